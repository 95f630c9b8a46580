// npm run check: format, lint, types and texts. `npm run check -- format lint` runs only these; npm run lint:docs only the texts.
import { spawn } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build, buildTested } from './build.mjs';
import { emitDeclarations } from './build-types.mjs';
import { ensureClients } from './clients.mjs';
import { ensureInstalled, nodeTool, root } from './setup.mjs';
import { lastLine, readReport, settle } from './test-results.mjs';
import { transpile } from './transpile.mjs';

const cache = join(root, '.cache');
const report = join(cache, 'texts-report.json');
const types = (project) => nodeTool('typescript/bin/tsc', '--noEmit', '-p', project);
/** Files that have not changed since they passed are not read again: all of them take a minute of a core. */
const CACHED = ['--cache', '--cache-strategy', 'content', '--cache-location', join(cache, 'prettier')];
const FORMAT = ['--check', '--log-level', 'warn', ...CACHED, '.'];
const CLIENT_TYPES = 'client types';
const TEXTS = [
  'run',
  '--project=texts',
  '--reporter=default',
  `--reporter=${join(root, 'test/support/test-reporter.ts')}`,
];
/** `isBuilt`: it reads what a build writes. */
const CHECKS = [
  { group: 'format', name: 'format', command: nodeTool('prettier/bin/prettier.cjs', ...FORMAT) },
  { group: 'lint', name: 'lint', command: nodeTool('oxlint/bin/oxlint', '--deny-warnings') },
  { group: 'types', name: 'types', command: types('tsconfig.test.json') },
  { group: 'types', name: 'dashboard types', command: types('dashboard/tsconfig.json') },
  { group: 'types', name: CLIENT_TYPES, command: types('test/clients/tsconfig.json'), isBuilt: true },
  { group: 'texts', name: 'texts', command: nodeTool('vitest/vitest.mjs', ...TEXTS), isBuilt: true },
];

/** Runs one; prints its output in one piece, because several run at once. */
function check({ name, command: [command, args] }) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env: { ...process.env, RUVLLM_TEST_REPORT: report } });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('error', (error) => resolve({ name, ok: false, output: `${error.message}\n` }));
    child.on('close', (status) => resolve({ name, ok: status === 0, output }));
  });
}

const groups = [...new Set(CHECKS.map(({ group }) => group))];
const names = process.argv.slice(2).length > 0 ? process.argv.slice(2) : groups;
const unknown = names.filter((name) => !groups.includes(name));
if (unknown.length > 0) {
  console.error(`error: there is no check ${unknown.join(', ')}; there are ${groups.join(', ')}`);
  process.exit(2);
}

// A failing set-up step ends the process, which must also read as a failure.
let isReported = false;
process.once('exit', () => isReported || console.log(lastLine({ passed: 0, failed: 1 })));

ensureInstalled();
mkdirSync(cache, { recursive: true });
rmSync(report, { force: true });
const chosen = CHECKS.filter(({ group }) => names.includes(group));
const clients = names.includes('types') ? ensureClients() : Promise.resolve('ready');
// The others only read the sources: they run while the build occupies the other core.
const running = chosen.filter(({ isBuilt }) => !isBuilt).map(check);
if (running.length < chosen.length) await build();
if (names.includes('texts')) {
  await buildTested();
  await transpile();
  emitDeclarations(); // What it refuses, the check of types reports.
}
const isUnreachable = (await clients) === 'unreachable';
if (isUnreachable) console.log('client types are not checked: the npm registry does not answer');
const built = chosen.filter(({ name, isBuilt }) => isBuilt && !(isUnreachable && name === CLIENT_TYPES));
running.push(...built.map(check));
const results = await Promise.all(running);
for (const { output } of results) process.stdout.write(output);
for (const { name, ok } of results) console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}`);
const texts = names.includes('texts') ? settle(readReport(report)) : settle({ files: [], unhandled: [] });
const failedChecks = results.filter(({ ok }) => !ok);
// A failing text counts by itself, not once more as the check of all texts.
const failedTexts = texts.failures.length + texts.unhandled.length;
const failed = failedTexts + failedChecks.filter(({ name }) => name !== 'texts' || failedTexts === 0).length;
const passed = texts.passed + results.filter(({ name, ok }) => ok && name !== 'texts').length;
isReported = true;
console.log(lastLine({ passed, failed, skipped: texts.skipped }));
process.exitCode = failed === 0 ? 0 : 1;
