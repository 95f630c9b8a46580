import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

/** Files that need a process of their own: damaged native addons, which may end the process that loads them. */
const ISOLATED = ['src/platform/node/kernels/native-addon.test.ts'];

/** Clients are installed apart; without them their tests cannot even be loaded. */
const hasClients = existsSync(new URL('test/clients/node_modules/.package-lock.json', import.meta.url));
if (!hasClients) console.log('test/clients skipped: its packages are not installed, run "npm test"');

export default defineConfig({
  test: {
    // Built code is run as it is: transforming bundles takes seconds, and workers could not follow.
    server: { deps: { external: [/\/\.cache\/(?:tested|tools)\//, /\/dist\/lib\//] } },
    // Only a hanging test meets these limits, on a machine many times slower than ours.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // One second, the default, is too short for another process on a busy machine.
    expect: { poll: { timeout: 300_000 } },
    pool: 'forks',
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    setupFiles: ['test/support/setup-file.ts'],
    projects: [
      { extends: true, test: {
    // Built code is run as it is: transforming bundles takes seconds, and workers could not follow.
    server: { deps: { external: [/\/\.cache\/(?:tested|tools)\//, /\/dist\/lib\//] } }, name: 'isolated', include: ISOLATED } },
      // Loading the sources anew for each file took longer than its tests: these share two processes.
      {
        extends: true,
        test: {
    // Built code is run as it is: transforming bundles takes seconds, and workers could not follow.
    server: { deps: { external: [/\/\.cache\/(?:tested|tools)\//, /\/dist\/lib\//] } },
          name: 'shared',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'dashboard/src/**/*.test.ts'],
          exclude: [...ISOLATED, hasClients ? '**/node_modules/**' : 'test/clients/**'],
          isolate: false,
        },
      },
    ],
  },
});
