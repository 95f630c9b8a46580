// npm test: set-up, build, tests. Ends with "N passed, N failed". `--long` (npm run test:long) runs campaigns in full: hundreds of kills,
// every fault, thousands of simulations. `--changed [REF]` runs only the tests near the files that changed. Texts: npm run check.
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build, buildTested } from './build.mjs';
import { tryBuildNative } from './build-native.mjs';
import { ensureClients } from './clients.mjs';
import { ensureWebGpu } from './peers.mjs';
import { ensureInstalled, nodeTool, root, run } from './setup.mjs';
import { chooseChanged, takeChanged } from './test-changed.mjs';
import { processorMs } from './processor-time.mjs';
import { transpile } from './transpile.mjs';
import { filesToRepeat, lastLine, readReport, recordDurations, recordUnstable, settle } from './test-results.mjs';

const cache = join(root, '.cache');
const durations = join(cache, 'test-durations.json');
const isLong = process.argv.includes('--long');
const { changedSince, rest } = takeChanged(process.argv.slice(2).filter((argument) => argument !== '--long'));

// A failing set-up step ends the process, which must also read as a failure.
let isReported = false;
process.once('exit', () => isReported || console.log(lastLine({ passed: 0, failed: 1 })));

const seconds = (ms) => Math.round(ms / 1000);

/** Runs vitest and returns its report. */
function runTests(args, { name }) {
  const report = join(cache, name);
  const guard = join(cache, 'test-guard.json');
  for (const path of [report, guard]) rmSync(path, { force: true });
  const env = {
    ...process.env,
    RUVLLM_TEST_SIZE: isLong ? 'long' : 'short',
    RUVLLM_TEST_REPORT: report,
    RUVLLM_TEST_GUARD: guard,
  };
  const reporter = join(root, 'test/support/test-reporter.ts');
  run(...nodeTool('vitest/vitest.mjs', 'run', '--reporter=default', `--reporter=${reporter}`, ...args), { env });
  const { files, unhandled } = readReport(report);
  // Vitest may have died before it looked at what the tests wrote.
  const problems = existsSync(guard) ? JSON.parse(readFileSync(guard, 'utf8')) : ['the guard of folders did not run'];
  return { files, unhandled: [...unhandled, ...problems] };
}

/** Completes the clone and builds what the tests of processes start; returns the names of steps that failed. */
async function setUp() {
  if (!ensureWebGpu()) console.log('webgpu could not be installed: its kernels are not tested');
  // Downloads while the build runs.
  const installingClients = ensureClients();
  await build();
  await buildTested();
  await transpile();
  const native = await tryBuildNative({ only: isLong ? 'all' : 'best' });
  const clients = await installingClients;
  // Without a registry the clients' tests are skipped; a registry that answers must have the locked versions.
  if (clients === 'unreachable') console.log('client tests skipped: the npm registry does not answer');
  // A missing compiler is a difference between machines; a compiler that rejects our sources is a failure.
  return [clients === 'failed' ? 'clients' : null, native.state === 'failed' ? 'native' : null].filter(Boolean);
}

const startMs = Date.now();
ensureInstalled();
mkdirSync(cache, { recursive: true });
const chosen = changedSince === null ? null : chooseChanged({ root, since: changedSince, durations });
for (const line of chosen?.notes ?? []) console.log(line);
if (chosen?.files.length === 0) {
  isReported = true;
  console.log(lastLine({ passed: 0, failed: 0 }));
  process.exit(0);
}
// Tests of sources need no build, which takes longer than they do.
const failedSteps = chosen === null || chosen.needsBuild ? await setUp() : [];
const selected = [...(chosen?.files ?? []), ...rest.filter((argument) => !argument.startsWith('-'))];
// Texts are checked by npm run check; a named one runs here, too.
const projects = selected.length === 0 ? ['--project=isolated', '--project=shared'] : [];
const first = runTests([...projects, ...(chosen?.files ?? []), ...rest], { name: 'test-report.json' });
recordDurations(durations, first);
const repeated = filesToRepeat(first);
if (repeated.length > 0) console.log(`Running ${repeated.length} failed files again, alone …`);
const again =
  repeated.length === 0 ? undefined : runTests([...repeated, '--maxWorkers=1'], { name: 'test-report-again.json' });
const { passed, skipped, failures, unstable, unhandled } = settle(first, again);
recordUnstable(join(cache, 'test-unstable.json'), unstable);
for (const { test } of failures) console.log(`FAILED ${test}`);
for (const message of unhandled) console.log(`FAILED outside of tests: ${message}`);
for (const step of failedSteps) console.log(`FAILED ${step}: see its message above`);
for (const { test, error } of unstable) console.log(`UNSTABLE ${test} (passed alone; beside others: ${error})`);
const failed = failures.length + unhandled.length + failedSteps.length;
isReported = true;
console.log(`took ${seconds(Date.now() - startMs)} s, ${seconds(processorMs())} s of processor time`);
console.log(lastLine({ passed, failed, unstable: unstable.length, skipped }));
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
