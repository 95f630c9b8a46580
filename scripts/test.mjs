// npm test: set-up, format, lint, types, build, tests. Ends with "N passed, N failed".
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from './build.mjs';
import { tryBuildNative } from './build-native.mjs';
import { ensureInstalled, nodeTool, root, run } from './setup.mjs';

// A set-up step that fails ends the process: that too must read as a failure.
let isReported = false;
process.once('exit', () => isReported || console.log('0 passed, 1 failed'));

ensureInstalled();
build(); // first: bench/ imports the library by its name, so its types must be there
const native = await tryBuildNative();
const checks = [
  ['format', nodeTool('prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.')],
  ['lint', nodeTool('oxlint/bin/oxlint', '--deny-warnings')],
  ['types', nodeTool('typescript/bin/tsc', '-p', 'tsconfig.test.json')],
  ['dashboard types', nodeTool('typescript/bin/tsc', '-p', 'dashboard/tsconfig.json')],
];
const results = checks.map(([name, command]) => [name, run(...command) === 0]);
// No compiler is how machines differ; a compiler that refuses our sources is a failure.
if (native.state !== 'unavailable') results.push(['native', native.state === 'ready']);
for (const [name, ok] of results) console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}`);
const failedChecks = results.filter(([, ok]) => !ok).length;

const report = join(root, '.cache/test-report.json');
rmSync(report, { force: true });
const filters = process.argv.slice(2);
run(
  ...nodeTool(
    'vitest/vitest.mjs',
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...filters,
  ),
);
// A run that died before its report is a failure, never a silent zero.
const totals = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : { numPassedTests: 0, numFailedTests: 1 };
const failedFiles = (totals.testResults ?? []).filter(
  (file) => file.status === 'failed' && file.assertionResults.length === 0,
);
const passed = totals.numPassedTests + results.length - failedChecks;
const failed = totals.numFailedTests + failedFiles.length + failedChecks;
const skipped = (totals.numPendingTests ?? 0) + (totals.numTodoTests ?? 0);
isReported = true;
console.log(`${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
process.exitCode = failed === 0 && totals.numPassedTests > 0 ? 0 : 1;
