// npm test: set-up, format, lint, types, build, tests. Ends with "N passed, N failed". With --long (npm run test:long) campaigns run in
// full: hundreds of kills, every fault, thousands of simulations.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build, buildTested } from './build.mjs';
import { tryBuildNative } from './build-native.mjs';
import { ensureClients } from './clients.mjs';
import { ensureWebGpu } from './peers.mjs';
import { ensureInstalled, nodeTool, root, run } from './setup.mjs';
import { transpile } from './transpile.mjs';

// A failing set-up step ends the process, which must also read as a failure.
let isReported = false;
process.once('exit', () => isReported || console.log('0 passed, 1 failed'));

/** Starts a check; prints its output in one piece, because several run at once. */
function check(name, [command, args]) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('error', (error) => resolve({ name, ok: false, output: `${error.message}\n` }));
    child.on('close', (status) => resolve({ name, ok: status === 0, output }));
  });
}

const isLong = process.argv.includes('--long');
const filters = process.argv.slice(2).filter((argument) => argument !== '--long');

ensureInstalled();
if (!ensureWebGpu()) console.log('webgpu could not be installed: its kernels are not tested');
// Downloads while the build runs.
const installingClients = ensureClients();
// Format and lint only read the sources: they run while the build occupies the other core.
const checks = [
  // Files that have not changed since they passed are not read again: all of them take a minute of a core.
  check(
    'format',
    nodeTool(
      'prettier/bin/prettier.cjs',
      '--check',
      '--log-level',
      'warn',
      '--cache',
      '--cache-strategy',
      'content',
      '--cache-location',
      join(root, '.cache/prettier'),
      '.',
    ),
  ),
  check('lint', nodeTool('oxlint/bin/oxlint', '--deny-warnings')),
];
await build(); // Before the types: bench/ imports the library by its name.
checks.push(
  check('types', nodeTool('typescript/bin/tsc', '-p', 'tsconfig.test.json')),
  check('dashboard types', nodeTool('typescript/bin/tsc', '-p', 'dashboard/tsconfig.json')),
);
const clients = await installingClients;
if (clients === 'ready') {
  checks.push(check('client types', nodeTool('typescript/bin/tsc', '-p', 'test/clients/tsconfig.json')));
}
await buildTested();
await transpile();
const native = await tryBuildNative({ only: isLong ? 'all' : 'best' });
const results = await Promise.all(checks);
// Without a registry the clients' tests are skipped; a registry that answers must have the locked versions.
if (clients === 'unreachable') console.log('client tests skipped: the npm registry does not answer');
else results.push({ name: 'clients', ok: clients === 'ready', output: '' });
// A missing compiler is a difference between machines; a compiler that rejects our sources is a failure.
if (native.state !== 'unavailable') results.push({ name: 'native', ok: native.state === 'ready', output: '' });
for (const { output } of results) process.stdout.write(output);
for (const { name, ok } of results) console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}`);
const failedChecks = results.filter(({ ok }) => !ok).length;

/** Runs vitest and returns its report. A run that died before its report is a failure, never a silent zero. */
function runTests(name, args) {
  const report = join(root, '.cache', name);
  rmSync(report, { force: true });
  run(
    ...nodeTool(
      'vitest/vitest.mjs',
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
      ...args,
    ),
    { env: { ...process.env, RUVLLM_TEST_SIZE: isLong ? 'long' : 'short' } },
  );
  if (!existsSync(report)) return { numPassedTests: 0, numFailedTests: 1, testResults: [] };
  return JSON.parse(readFileSync(report, 'utf8'));
}

const failedFilesOf = ({ testResults }) => testResults.filter(({ status }) => status === 'failed');
/** A file that could not even be loaded has no tests. */
const numFailuresOf = (totals) =>
  totals.numFailedTests + failedFilesOf(totals).filter(({ assertionResults }) => assertionResults.length === 0).length;
const failedTestsOf = (totals) =>
  failedFilesOf(totals).flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName }) => `${relative(root, name)}: ${fullName}`),
  );

/** More failing files than this are no accident of a busy machine. */
const MAX_REPEATED_FILES = 3;

const totals = runTests('test-report.json', filters);
let numFailedTests = numFailuresOf(totals);
let numPassedTests = totals.numPassedTests;
const failedFiles = failedFilesOf(totals);
if (failedFiles.length > 0 && failedFiles.length <= MAX_REPEATED_FILES) {
  // Browsers and processes compete for the cores; alone, a failure is one of the code.
  console.log(`Running ${failedFiles.length} failed files again, alone …`);
  const files = failedFiles.map(({ name }) => relative(root, name));
  const again = runTests('test-report-again.json', [...files, '--maxWorkers=1']);
  const stillFailing = new Set(failedTestsOf(again));
  const unstable = failedTestsOf(totals).filter((name) => !stillFailing.has(name));
  const numLeft = numFailuresOf(again);
  if (again.numPassedTests > 0 && numLeft < numFailedTests) {
    numPassedTests += numFailedTests - numLeft;
    numFailedTests = numLeft;
  }
  for (const name of unstable) console.log(`UNSTABLE ${name} (failed beside other tests, passed alone)`);
}
const passed = numPassedTests + results.length - failedChecks;
const failed = numFailedTests + failedChecks;
const skipped = (totals.numPendingTests ?? 0) + (totals.numTodoTests ?? 0);
isReported = true;
console.log(`${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
process.exitCode = failed === 0 && totals.numPassedTests > 0 ? 0 : 1;
