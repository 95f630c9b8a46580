import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'dashboard/src/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // One second, the default, is too short for another process on a busy machine; a poll that succeeds does not wait it out.
    expect: { poll: { timeout: 30_000 } },
    pool: 'forks',
    maxWorkers: 2,
  },
});
