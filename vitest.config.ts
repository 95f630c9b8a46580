import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'dashboard/src/**/*.test.ts'],
    // Nobody waits these out but a test that hangs: they are for a machine many times slower than ours, not for the usual one.
    testTimeout: 180_000,
    hookTimeout: 240_000,
    // One second, the default, is too short for another process on a busy machine.
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    maxWorkers: 2,
  },
});
