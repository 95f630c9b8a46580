// Each test file has a home and a folder for temporary files of its own; afterwards nothing else may have changed. Vitest runs the default
// export before its workers start, and the function that it returns after they have ended.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join, relative } from 'node:path';
import type { TestProject } from 'vitest/node';
import {
  cacheFolder,
  configPath,
  currentPathContext,
  dataFolder,
  modelCacheRoot,
  stateFolder,
} from '../../src/platform/node/files/paths.ts';
import { KEPT } from './temporary-root.ts';

const PREFIX = 'ruvllm-test-';
/** Settings of the person who runs the tests. RUVLLM_TEST_… are ours; browsers and native builds are of the machine. */
const PERSONAL = /^(?:RUVLLM_(?!TEST_|CHROMIUM$|NATIVE_BUILD$)|XDG_|HF_|HUGGINGFACE_)/;
/** Written by browsers and Node themselves. */
const FOREIGN = /^(?:\.?org\.chromium\.|\.com\.google\.Chrome|chrome_|playwright|node-compile-cache)/;

/** Times of files have the clock of the kernel, which ticks at most every ten milliseconds. */
const CLOCK_MS = 20;

/** Paths with their state. */
export type Snapshot = ReadonlyMap<string, { readonly state: string; readonly changedMs: number }>;
export interface FileTime {
  readonly file: string;
  readonly startMs: number;
  readonly endMs: number;
}

/** Short: names of sockets may have 107 bytes. */
const idOf = (file: string): string => createHash('sha256').update(file).digest('hex').slice(0, 8);

/** Points homes and temporary files of this process, and of those that it starts, below the folder of this test file. */
export function useOwnFolders(run: string, file: string, environment: NodeJS.ProcessEnv = process.env): void {
  const [home, temporary] = ['home', 'tmp'].map((name) => join(run, idOf(file), name)) as [string, string];
  for (const folder of [home, temporary]) mkdirSync(folder, { recursive: true });
  for (const name of ['HOME', 'USERPROFILE']) environment[name] = home;
  for (const name of ['TMPDIR', 'TEMP', 'TMP']) environment[name] = temporary;
  if (process.platform !== 'win32') return;
  environment['APPDATA'] = join(home, 'AppData/Roaming');
  environment['LOCALAPPDATA'] = join(home, 'AppData/Local');
}

/** The entries that a test file left among its temporary files. */
export function listLeft(run: string, file: string): string[] {
  const folder = join(run, idOf(file), 'tmp');
  return entriesOf(folder).filter((name) => !name.startsWith(KEPT) && !FOREIGN.test(name));
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function look(path: string, into: Map<string, { state: string; changedMs: number }>): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  const isFolder = stats.isDirectory();
  into.set(path, { state: isFolder ? 'folder' : `${stats.size} ${stats.mtimeMs}`, changedMs: stats.ctimeMs });
  if (isFolder) for (const name of entriesOf(path)) look(join(path, name), into);
}

/** The state of all files below these places. */
export function takeSnapshot(places: Iterable<string>): Snapshot {
  const entries = new Map<string, { state: string; changedMs: number }>();
  for (const place of places) look(place, entries);
  return entries;
}

/** Each path that is not as it was, with the files whose tests ran when it changed. */
export function describeChanges(before: Snapshot, after: Snapshot, times: readonly FileTime[]): string[] {
  const isNew = (path: string): boolean => after.has(path) && !before.has(path);
  // A new folder stands for what is in it.
  const changed = [...after].filter(([path, { state }]) => before.get(path)?.state !== state && !isNew(dirname(path)));
  const removed = [...before.keys()].filter((path) => !after.has(path));
  return [
    ...changed.map(([path, { changedMs }]) => {
      const during = times.filter(
        ({ startMs, endMs }) => startMs - CLOCK_MS <= changedMs && changedMs <= endMs + CLOCK_MS,
      );
      return `${path} was written${during.length > 0 ? ` during ${during.map(({ file }) => file).join(', ')}` : ''}`;
    }),
    ...removed.map((path) => `${path} was removed`),
  ];
}

/** Where RuvLLM keeps things of the person who runs the tests: by the environment, and by the account if a child has none. */
export function personalPlaces(): Set<string> {
  const context = currentPathContext();
  const contexts = [context, { ...context, environment: {}, homeFolder: userInfo().homedir }];
  const rules = [dataFolder, stateFolder, cacheFolder, configPath, modelCacheRoot];
  return new Set(contexts.flatMap((one) => rules.map((rule) => rule(one))));
}

/** Files of the checkout that are new or changed; ignored ones are downloads and builds. */
export function takeCheckout(root: string): Snapshot {
  const git = spawnSync('git', ['status', '--porcelain', '-z', '--no-renames', '--untracked-files=all'], {
    cwd: root,
    encoding: 'utf8',
  });
  if (git.status !== 0) return new Map(); // A copy without its history.
  const paths = git.stdout.split('\0').filter((line) => line !== '').map((line) => join(root, line.slice(3))); // prettier-ignore
  const gone = paths.map((path) => [path, { state: 'gone', changedMs: Date.now() }] as const);
  return new Map([...gone, ...takeSnapshot(paths)]);
}

/** Entries of programs that had no TMPDIR. */
const listStrays = (folder: string): string[] =>
  entriesOf(folder)
    .filter((name) => name.startsWith('ruvllm-') && !name.startsWith(PREFIX))
    .map((name) => join(folder, name));

/** Removes the folders of runs that were killed, and tells whether another run goes on: it writes to the same place. */
function hasOtherRun(folder: string): boolean {
  let isRunning = false;
  for (const name of entriesOf(folder)) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid === undefined || Number(pid) === process.pid) continue;
    try {
      process.kill(Number(pid), 0);
      isRunning = true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') isRunning = true;
      else rmSync(join(folder, name), { recursive: true, force: true });
    }
  }
  return isRunning;
}

/** Removes a folder to which browsers and servers that end write until the last moment; Node itself retries without looking again. */
function removeBusy(folder: string, numRetries = 20): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    if (numRetries === 0) throw error;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    removeBusy(folder, numRetries - 1);
  }
}

export default function setUp(project: TestProject): (() => void) | undefined {
  if (process.env['RUVLLM_TEST_FOLDER'] !== undefined) return undefined; // Once for all projects.
  const { root } = project.vitest.config;
  const temporary = realpathSync(tmpdir());
  const isShared = hasOtherRun(temporary);
  // While a single file runs, an author may edit, and other runs may write.
  const report = process.env['RUVLLM_TEST_GUARD'];
  const places = personalPlaces();
  const takeAll = (): Snapshot =>
    new Map([...takeSnapshot(places), ...(report === undefined ? [] : takeCheckout(root))]);
  const oldStrays = new Set(listStrays(temporary));
  const before = takeAll();

  const run = mkdtempSync(join(temporary, `${PREFIX}${process.pid}-`));
  chmodSync(run, 0o711); // Tests of a root user start programs as other users, who must reach the folders that they are given.
  process.env['npm_config_userconfig'] ??= join(process.env['HOME'] ?? userInfo().homedir, '.npmrc'); // Names the registry.
  process.env['npm_config_cache'] = join(root, '.cache/npm');
  for (const name of Object.keys(process.env)) if (PERSONAL.test(name)) delete process.env[name];
  process.env['RUVLLM_TEST_FOLDER'] = run;

  return () => {
    const times = project.vitest.state.getFiles().map(({ filepath, result }): FileTime => {
      const startMs = result?.startTime ?? 0;
      return { file: relative(root, filepath), startMs, endMs: startMs + (result?.duration ?? 0) };
    });
    const left = project.vitest.state
      .getFiles()
      .flatMap(({ filepath }) =>
        listLeft(run, filepath).map((name) => `${relative(root, filepath)} left ${name} among the temporary files`),
      );
    const isChecked = report !== undefined && !isShared && !hasOtherRun(temporary);
    if (report !== undefined && !isChecked) {
      console.error(`${temporary} is not checked: another run of tests writes there, too`);
    }
    const strays = takeSnapshot(isChecked ? listStrays(temporary).filter((path) => !oldStrays.has(path)) : []);
    const problems = [
      ...describeChanges(before, takeAll(), times),
      ...describeChanges(new Map(), strays, times),
      ...left,
    ];
    removeBusy(run);
    for (const problem of problems) console.error(`error: ${problem}`);
    if (problems.length > 0) {
      console.error(
        'Tests may write only below their own HOME and TMPDIR. A RuvLLM that ran meanwhile writes elsewhere, too.',
      );
      process.exitCode = 1;
    }
    if (report !== undefined) writeFileSync(report, JSON.stringify(problems));
  };
}
