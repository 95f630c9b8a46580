import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { TEXT_TESTS } from './scripts/text-tests.mjs';
import { campaign } from './test/support/campaign.ts';
import { LongestFirst } from './test/support/longest-first.ts';

/** Files that need a process of their own: damaged native addons, which may end the process that loads them. */
const ISOLATED = ['src/platform/node/kernels/native-addon.test.ts'];

/** Clients are installed apart; without them their tests cannot even be loaded. */
const hasClients = existsSync(new URL('test/clients/node_modules/.package-lock.json', import.meta.url));
if (!hasClients) console.log('test/clients skipped: its packages are not installed, run "npm test"');

/** Only a hang meets a limit; the campaigns of `npm run test:long` are long on purpose. */
const LIMIT_MS = campaign({ short: 120_000, long: 600_000 });

export default defineConfig({
  test: {
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
    // Built code is run as it is: transforming bundles takes seconds, and workers could not follow.
    server: { deps: { external: [/\/\.cache\/(?:tested|tools)\//, /\/dist\/lib\//] } },
    // One second, the default, is too short for another process on a busy machine.
    expect: { poll: { timeout: LIMIT_MS / 2 } },
    pool: 'forks',
    maxWorkers: 2,
    // Most values of a test die young: with a large space for them, whole folders took 17 % less processor time.
    execArgv: ['--max-semi-space-size=64'],
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/own-folders.ts'],
    setupFiles: ['test/support/setup-file.ts'],
    // Transformed sources, by their content: half of the time of a run of small files.
    experimental: { fsModuleCache: true, fsModuleCachePath: '.cache/vitest' },
    projects: [
      { extends: true, test: { name: 'isolated', include: ISOLATED } },
      { extends: true, test: { name: 'texts', include: TEXT_TESTS, isolate: false } },
      // Loading the sources anew for each file took longer than its tests: these share two processes.
      {
        extends: true,
        test: {
          name: 'shared',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'dashboard/src/**/*.test.ts'],
          exclude: [...ISOLATED, ...TEXT_TESTS, hasClients ? '**/node_modules/**' : 'test/clients/**'],
          isolate: false,
        },
      },
    ],
  },
});
