// The frame of npm test: what counts as passed, what runs first, which tests a change needs, and that tests write nowhere else.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { describeChanges, takeCheckout, takeSnapshot, useOwnFolders } from './support/own-folders.ts';
import type { FailureReport, TestReport } from './support/test-reporter.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const load = async <T>(name: string): Promise<T> => (await import(pathToFileURL(join(root, name)).href)) as T;

interface Failure extends FailureReport {
  readonly test: string;
}
const { addLines, filesToRepeat, lastLine, readReport, recordDurations, recordUnstable, settle } = await load<{
  addLines(texts: readonly string[]): string;
  filesToRepeat(report: TestReport): string[];
  lastLine(counts: { passed: number; failed: number; unstable?: number; skipped?: number }): string;
  readReport(path: string): TestReport;
  recordDurations(path: string, report: TestReport): void;
  recordUnstable(path: string, unstable: readonly Failure[], date?: string): void;
  settle(
    first: TestReport,
    again?: TestReport,
  ): { passed: number; skipped: number; failures: Failure[]; unstable: Failure[]; unhandled: string[] };
}>('scripts/test-results.mjs');
const { chooseChanged, chooseTests, readGraph, takeChanged } = await load<{
  chooseChanged(options: { root: string; since: string; durations: string }): Chosen;
  chooseTests(options: object): Chosen;
  readGraph(files: readonly string[], read: (file: string) => string): object;
  takeChanged(args: readonly string[]): { changedSince: string | null; rest: string[] };
}>('scripts/test-changed.mjs');
interface Chosen {
  readonly files: string[];
  readonly notes: string[];
  readonly needsBuild: boolean;
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ruvllm-run-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

const execute = (program: string, args: readonly string[], env = process.env) =>
  new Promise<{ code: number; output: string }>((resolve) => {
    execFile(program, args, { cwd: folder, env, encoding: 'utf8' }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
    );
  });

const failureOf = (name: string, isTest = true): FailureReport => ({ name, error: `${name} was wrong`, isTest });
const fileOf = (file: string, passed: number, failures: readonly FailureReport[] = [], skipped = 0) => ({
  file,
  ms: 10,
  processorMs: 10,
  passed,
  skipped,
  failures,
});
const reportOf = (files: TestReport['files'], unhandled: readonly string[] = []): TestReport => ({ files, unhandled });

describe('the counts', () => {
  test('a test that passes only alone is unstable, and neither passed nor failed', () => {
    const first = reportOf([fileOf('a', 8, [failureOf('one'), failureOf('two')]), fileOf('b', 5, [], 2)]);
    const settled = settle(first, reportOf([fileOf('a', 9, [failureOf('two')])]));
    expect(settled).toMatchObject({ passed: 13, skipped: 2, unhandled: [] });
    expect(settled.failures.map((one) => one.test)).toEqual(['a: two']);
    expect(settled.unstable).toMatchObject([{ test: 'a: one', error: 'one was wrong' }]);
  });

  test('a file whose hook failed brings its tests the second time', () => {
    const first = reportOf([fileOf('a', 0, [failureOf('the file', false)], 3)]);
    expect(settle(first)).toMatchObject({ passed: 0, failures: [{ test: 'a: the file' }] });
    const settled = settle(first, reportOf([fileOf('a', 3)]));
    expect(settled).toMatchObject({ passed: 3, skipped: 0, failures: [], unstable: [{ test: 'a: the file' }] });
  });

  test('a second run that dies, skips or fails otherwise excuses nothing', () => {
    const first = reportOf([fileOf('a', 1, [failureOf('one')])], ['a worker died']);
    expect(settle(first, readReport(join(folder, 'none')))).toMatchObject({
      failures: [{ test: 'a: one' }],
      unstable: [],
      unhandled: ['a worker died', 'the tests ended without a report'],
    });
    expect(settle(first, reportOf([fileOf('a', 0, [], 2)])).failures).toMatchObject([{ test: 'a: one' }]);
    const other = settle(first, reportOf([fileOf('a', 1, [failureOf('two')])]));
    expect(other.failures).toMatchObject([{ test: 'a: two' }]);
    expect(other).toMatchObject({ passed: 0, unstable: [{ test: 'a: one' }] });
  });

  test('up to three files run again', () => {
    const failed = ['a', 'b', 'c', 'd'].map((name) => fileOf(name, 1, [failureOf('x')]));
    expect(filesToRepeat(reportOf([...failed.slice(1), fileOf('e', 1)]))).toEqual(['b', 'c', 'd']);
    expect(filesToRepeat(reportOf(failed))).toEqual([]);
  });

  test('the last line, and the sum of two', () => {
    expect(lastLine({ passed: 3, failed: 0 })).toBe('3 passed, 0 failed');
    const line = lastLine({ passed: 3, failed: 1, unstable: 2, skipped: 4 });
    expect(line).toBe('3 passed, 1 failed, 2 unstable, 4 skipped');
    expect(addLines([`ok\n${line}\n`, '5 passed, 0 failed, 1 skipped\n'])).toBe(
      '8 passed, 1 failed, 2 unstable, 5 skipped',
    );
    expect(addLines(['5 passed, 0 failed', 'Error: out of memory\n'])).toBe('5 passed, 1 failed');
  });

  test('unstable tests are recorded with date and error, durations replace older ones of the same file', () => {
    const unstable = join(folder, 'unstable.json');
    const [one] = settle(reportOf([fileOf('a', 1, [failureOf('one')])])).failures;
    recordUnstable(unstable, []);
    expect(existsSync(unstable)).toBe(false);
    for (const date of ['2026-01-01', '2026-01-02']) recordUnstable(unstable, [one!], date);
    const record = { test: 'a: one', error: 'one was wrong' };
    expect(JSON.parse(readFileSync(unstable, 'utf8'))).toEqual([
      { date: '2026-01-01', ...record },
      { date: '2026-01-02', ...record },
    ]);
    const durations = join(folder, 'durations.json');
    recordDurations(durations, reportOf([fileOf('a', 1), fileOf('b', 1)]));
    recordDurations(durations, reportOf([{ ...fileOf('a', 1), ms: 99 }, { ...fileOf('b', 0), ms: 0 }])); // prettier-ignore
    expect(JSON.parse(readFileSync(durations, 'utf8'))).toEqual({ a: 99, b: 10 });
  });
});

test.each([
  ['short', 120_000],
  ['long', 600_000],
])('in the %s form a test and a hook may take %i ms', async (size, limit) => {
  vi.stubEnv('RUVLLM_TEST_SIZE', size);
  // Another query is another module.
  const { default: config } = (await import(/* @vite-ignore */ `../vitest.config.ts?${size}`)) as {
    default: { test: object };
  };
  expect(config.test).toMatchObject({ testTimeout: limit, hookTimeout: limit });
});

describe('the tests of a change', () => {
  const FILES: Record<string, string> = {
    'src/a.ts': 'export const a = 1;',
    'src/b.ts': "import { a } from './a.ts';",
    'src/a.test.ts': "import { a } from './a.ts';",
    'src/deep/b.test.ts': "import '../b.ts';",
    'src/other.test.ts':
      "import type { A } from './a.ts';\nimport type {\n  B,\n} from './b.ts';\nimport './other.ts';",
    'src/other.ts': '',
    'data/table.json': '{}',
    'test/support/serve.ts': "const command = new URL('../../bin/ruvllm.mjs', import.meta.url);",
    'test/served.test.ts': "import './support/serve.ts';\nimport '../src/a.ts';\nread('data/table.json');",
    'test/docs.test.ts': "import '../src/a.ts';",
  };
  const choose = (changed: readonly string[], durations: Record<string, number> = {}): Chosen =>
    chooseTests({ changed, durations, ...readGraph(Object.keys(FILES), (file) => FILES[file]!) });

  test('are those that import it, the nearest first, without the built program and the texts', () => {
    expect(choose(['src/a.ts'])).toEqual({
      files: ['src/a.test.ts', 'src/deep/b.test.ts'],
      notes: [
        'left out: 1 test files of the built program, which npm test runs',
        'left out: tests of texts, which npm run lint:docs runs',
      ],
      needsBuild: false,
    });
    expect(choose(['src/b.ts']).files).toEqual(['src/deep/b.test.ts']);
  });

  test('of the built program run when they or files that they name change, after a build', () => {
    for (const changed of ['test/served.test.ts', 'test/support/serve.ts', 'data/table.json']) {
      expect(choose([changed]), changed).toEqual({ files: ['test/served.test.ts'], notes: [], needsBuild: true });
    }
  });

  test('end where a minute ends', () => {
    expect(choose(['src/a.ts'], { 'src/a.test.ts': 59_500, 'src/deep/b.test.ts': 501 })).toMatchObject({
      files: ['src/a.test.ts'],
      notes: expect.arrayContaining([
        'left out: 1 test files further away or longer than a minute allows, which npm test runs',
      ]),
    });
    expect(choose(['src/a.ts'], { 'src/a.test.ts': 59_500, 'src/deep/b.test.ts': 500 }).files).toHaveLength(2);
  });

  test('of what concerns all tests are all of them', () => {
    expect(choose(['vitest.config.ts'])).toMatchObject({
      files: [],
      notes: ['vitest.config.ts concerns all tests: run npm test'],
    });
  });

  test('are read from git: what is not committed, else the last commit, else a named one', async () => {
    const git = (...args: string[]) =>
      execute('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'commit.gpgsign=false', ...args]);
    const chosen = (since = 'HEAD') => chooseChanged({ root: folder, since, durations: join(folder, 'none') });
    write({ 'a.ts': '', 'a.test.ts': "import './a.ts';", 'b.ts': '', 'b.test.ts': "import './b.ts';" });
    await git('init', '-q');
    await git('add', '.');
    await git('commit', '-qm', 'one');
    write({ 'b.ts': '1' });
    await git('commit', '-qam', 'two');
    expect(chosen()).toMatchObject({ files: ['b.test.ts'], notes: ['1 files changed since HEAD~1: 1 test files run'] });
    write({ 'c.test.ts': '', 'a.ts': '1' });
    expect(chosen().files.sort()).toEqual(['a.test.ts', 'c.test.ts']);
    expect(chosen('HEAD~1').files.sort()).toEqual(['a.test.ts', 'b.test.ts', 'c.test.ts']);
    rmSync(join(folder, 'b.ts'));
    expect(chosen().files).toContain('b.test.ts');
  });

  test('are asked for with a commit or without', () => {
    expect(takeChanged(['-t', 'x'])).toEqual({ changedSince: null, rest: ['-t', 'x'] });
    expect(takeChanged(['--changed'])).toEqual({ changedSince: 'HEAD', rest: [] });
    expect(takeChanged(['--changed', 'main', '-t', 'x'])).toEqual({ changedSince: 'main', rest: ['-t', 'x'] });
    expect(takeChanged(['--changed', '-t', 'x'])).toEqual({ changedSince: 'HEAD', rest: ['-t', 'x'] });
  });
});

describe('the folders of a test', () => {
  test('are below one of the run, and no setting of a person is left', () => {
    const run = process.env['RUVLLM_TEST_FOLDER']!;
    expect([homedir().startsWith(run), tmpdir().startsWith(run)]).toEqual([true, true]);
    const personal = Object.keys(process.env).filter((name) => /^(?:XDG_|HF_|RUVLLM_(?:DATA|STATE|CONFIG))/.test(name));
    expect(personal).toEqual([]);
    const [a, b] = ['a.test.ts', 'b.test.ts'].map((file) => {
      const environment: NodeJS.ProcessEnv = {};
      useOwnFolders(folder, file, environment);
      return environment['HOME'];
    });
    expect(a).not.toBe(b);
  });

  test('a change elsewhere is found with the files that ran meanwhile', async () => {
    write({ 'kept/old': '1', 'kept/removed': '1', 'kept/changed': '1' });
    const before = takeSnapshot([join(folder, 'kept'), join(folder, 'missing')]);
    expect(describeChanges(before, takeSnapshot([join(folder, 'kept')]), [])).toEqual([]);
    write({ 'kept/changed': '12', 'kept/new': '1', 'missing/new': '1' });
    rmSync(join(folder, 'kept/removed'));
    const after = takeSnapshot([join(folder, 'kept'), join(folder, 'missing')]);
    const times = [
      { file: 'now.test.ts', startMs: 0, endMs: Date.now() + 60_000 },
      { file: 'earlier.test.ts', startMs: 0, endMs: 1 },
    ];
    const changes = describeChanges(before, after, times).map((text) => text.replaceAll(folder, ''));
    expect(changes).toEqual(
      expect.arrayContaining([
        '/kept/changed was written during now.test.ts',
        '/kept/new was written during now.test.ts',
        '/missing was written during now.test.ts',
        '/kept/removed was removed',
      ]),
    );
    expect(changes.filter((text) => /^\/(?:kept\/old|missing\/)/.test(text))).toEqual([]);
  });

  test('new, changed and removed files of a checkout are found', async () => {
    write({ changed: '1', removed: '1', kept: '1', '.gitignore': 'ignored\n' });
    await execute('git', ['init', '-q']);
    await execute('git', ['add', '.']);
    await execute('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'commit.gpgsign=false', 'commit', '-qm', 'x']); // prettier-ignore
    const before = takeCheckout(folder);
    write({ changed: '2', new: '1', ignored: '1' });
    rmSync(join(folder, 'removed'));
    const changes = describeChanges(before, takeCheckout(folder), []).map((text) => text.slice(folder.length + 1));
    expect(changes.sort()).toEqual(['changed was written', 'new was written', 'removed was written']);
  });
});

test('a run reports hooks that fail, errors outside of tests, and writes outside of the folders of a test', async () => {
  const support = (name: string): string => JSON.stringify(join(root, 'test/support', name));
  write({
    'vitest.config.mjs': `export default { test: { include: ['*.test.mjs'], isolate: false, maxWorkers: 1, globalSetup: [${support('own-folders.ts')}], setupFiles: [${support('setup-file.ts')}], reporters: [${support('test-reporter.ts')}] } };`,
    'hook.test.mjs':
      "import { beforeAll, expect, test } from 'vitest';\nbeforeAll(() => { throw new Error('no luck'); });\ntest('never', () => {});\n",
    'late.test.mjs':
      "import { test } from 'vitest';\ntest('passes', () => { void Promise.reject(new Error('too late')); });\n",
    'writes.test.mjs':
      "import { mkdtempSync, writeFileSync } from 'node:fs';\nimport { tmpdir } from 'node:os';\nimport { test } from 'vitest';\ntest('writes', () => { writeFileSync(process.env.PLANTED, ''); mkdtempSync(tmpdir() + '/left-'); mkdtempSync(process.env.SYSTEM + '/ruvllm-stray-'); });\n",
    'data/ruvllm/kept': '',
    'tmp/ruvllm-older': '',
  });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
  const { RUVLLM_TEST_FOLDER: _, ...inherited } = process.env;
  const [report, guard] = [join(folder, 'report.json'), join(folder, 'guard.json')];
  const { code, output } = await execute(process.execPath, ['node_modules/vitest/vitest.mjs', 'run'], {
    ...inherited,
    RUVLLM_TEST_REPORT: report,
    RUVLLM_TEST_GUARD: guard,
    XDG_DATA_HOME: join(folder, 'data'),
    TMPDIR: join(folder, 'tmp'),
    SYSTEM: join(folder, 'tmp'),
    PLANTED: join(folder, 'data/ruvllm/planted'),
  });
  expect(code, output).toBe(1);
  const { files, unhandled } = readReport(report);
  expect(unhandled, output).toEqual(['too late']);
  expect(Object.fromEntries(files.map((one) => [one.file, one]))).toMatchObject({
    'hook.test.mjs': { passed: 0, failures: [{ name: 'the file', error: 'no luck', isTest: false }] },
    'late.test.mjs': { passed: 1, failures: [] },
    'writes.test.mjs': { passed: 1, failures: [] },
  });
  // A RuvLLM of the person who runs this may write meanwhile.
  const problems = (JSON.parse(readFileSync(guard, 'utf8')) as string[])
    .filter((text) => text.startsWith(folder) || text.startsWith('writes'))
    .map((text) => text.replaceAll(folder, ''));
  expect(problems).toEqual([
    expect.stringMatching(/^\/data\/ruvllm\/planted was written during .*\bwrites\.test\.mjs/),
    expect.stringMatching(/^\/tmp\/ruvllm-stray-\w+ was written during .*\bwrites\.test\.mjs/),
    expect.stringMatching(/^writes\.test\.mjs left left-\w+ among the temporary files$/),
  ]);
});
