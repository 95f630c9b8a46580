// The tests near the files that changed, in under a minute, for `npm test -- --changed [REF]`. Vitest's own --changed transforms every
// test and its imports first, and knows neither the files that a test reads nor which of hundreds are near.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { TEXT_TESTS } from './text-tests.mjs';

/** Imported by no test, and used by all. */
const USED_BY_ALL =
  /^(?:package(?:-lock)?\.json|vitest\.config\.ts|tsconfig.*\.json|test\/support\/(?:setup-file|own-folders)\.ts)$/;
/** A test with one of these starts the built program, or imports it: nothing tells which sources it depends on. */
const BUILT_PROGRAM = /bin\/ruvllm\.mjs|[}'"`/]dist['"`/]/;
const CODE = /\.(?:[cm]?[jt]s|tsx)$/;
const TEST = /\.test\.ts$/;
/** Of test files, in two processes: half of it by the clock. */
const BUDGET_MS = 60_000;
/** Of a file that has not run here yet: those of test/ are end to end, and many take more than ten seconds. */
const guessMs = (file) => (file.startsWith('test/') ? 15_000 : 2000);

/** `--changed` and the commit behind it, if one follows; the default is HEAD. */
export function takeChanged(args) {
  const at = args.indexOf('--changed');
  if (at < 0) return { changedSince: null, rest: args };
  const next = args[at + 1];
  const hasReference = next !== undefined && !next.startsWith('-');
  return {
    changedSince: hasReference ? next : 'HEAD',
    rest: [...args.slice(0, at), ...args.slice(at + (hasReference ? 2 : 1))],
  };
}

/** Imports of types are erased, and no test can notice them. */
const TYPE_IMPORT = /^(?:import|export) type [^;]*? from [^;]*;/gm;

/** The files that each file names, in imports and in any other string: a test reads data by its path. */
export function readGraph(files, read) {
  const known = new Set(files);
  const texts = new Map(
    files.filter((file) => CODE.test(file)).map((file) => [file, read(file).replaceAll(TYPE_IMPORT, '')]),
  );
  const graph = new Map();
  for (const [file, text] of texts) {
    const names = Array.from(text.matchAll(/(['"`])([^'"`\n$]{3,200})\1/g), ([, , name]) => name);
    const paths = names.flatMap((name) => [posix.join(dirname(file), name), posix.normalize(name)]);
    graph.set(
      file,
      paths.filter((path) => known.has(path) && path !== file),
    );
  }
  return {
    graph,
    builtProgram: new Set([...texts].filter(([, text]) => BUILT_PROGRAM.test(text)).map(([file]) => file)),
  };
}

/** How many imports each file that depends on `starts` is away from them. */
function distancesFrom(starts, graph, isAllowed = () => true) {
  const users = new Map();
  for (const [file, names] of graph) {
    for (const name of names) users.set(name, [...(users.get(name) ?? []), file]);
  }
  const distances = new Map([...starts].filter((file) => isAllowed(file)).map((file) => [file, 0]));
  for (const [file, distance] of distances) {
    for (const user of users.get(file) ?? []) {
      if (!distances.has(user) && isAllowed(user)) distances.set(user, distance + 1);
    }
  }
  return distances;
}

/** The nearest tests, as many as fit the budget, and sentences about the others. */
export function chooseTests({ changed, graph, builtProgram, durations }) {
  const notes = changed
    .filter((file) => USED_BY_ALL.test(file))
    .map((file) => `${file} concerns all tests: run npm test`);
  const distances = distancesFrom(changed, graph);
  // A test of the built program is near only by itself and by what it imports of the tests.
  const isOfTests = (file) => !file.startsWith('src/') || TEST.test(file);
  const testDistances = distancesFrom(changed, graph, isOfTests);
  const doors = distancesFrom(builtProgram, graph, isOfTests);
  const reached = [...distances.keys()].filter((file) => TEST.test(file));
  const tests = reached.filter((file) => !TEXT_TESTS.includes(file));
  const isNear = (file) => !doors.has(file) || testDistances.has(file);
  const near = tests.filter(isNear);
  const lengthOf = (file) => durations[file] ?? guessMs(file);
  const folders = new Set(changed.map((file) => dirname(file)));
  const rankOf = (file) => (folders.has(dirname(file)) ? 0 : distances.get(file));
  near.sort((a, b) => rankOf(a) - rankOf(b) || lengthOf(a) - lengthOf(b));
  let leftMs = BUDGET_MS;
  const files = near.filter((file, i) => {
    if (i > 0 && lengthOf(file) > leftMs) return false;
    leftMs -= lengthOf(file);
    return true;
  });
  const numDoors = tests.length - near.length;
  if (numDoors > 0) notes.push(`left out: ${numDoors} test files of the built program, which npm test runs`);
  const numFar = near.length - files.length;
  if (numFar > 0)
    notes.push(`left out: ${numFar} test files further away or longer than a minute allows, which npm test runs`);
  if (reached.length > tests.length || changed.some((file) => file.endsWith('.md'))) {
    notes.push('left out: tests of texts, which npm run lint:docs runs');
  }
  return { files, notes, needsBuild: files.some((file) => doors.has(file)) };
}

function git(root, ...args) {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 });
  if (status === 0) return stdout.split('\0').filter((line) => line !== '');
  console.error(`error: git ${args.join(' ')}: ${stderr.trim().split('\n')[0]}`);
  process.exit(2);
}

/** The tests to run for the changes since a commit; on a clean checkout for those of the last commit. */
export function chooseChanged({ root, since, durations: path }) {
  const filesOf = (...args) => git(root, ...args, '-z');
  let changed = [...filesOf('diff', '--name-only', since), ...filesOf('ls-files', '--others', '--exclude-standard')];
  let name = since;
  if (changed.length === 0 && since === 'HEAD') {
    name = 'HEAD~1';
    changed = filesOf('diff', '--name-only', 'HEAD~1', 'HEAD');
  }
  if (changed.length === 0) return { files: [], notes: [`nothing has changed since ${name}`], needsBuild: false };
  // Files that were removed are in no list, and still named by those that import them.
  const files = [...new Set([...filesOf('ls-files', '--cached', '--others', '--exclude-standard'), ...changed])];
  const read = (file) => (existsSync(join(root, file)) ? readFileSync(join(root, file), 'utf8') : '');
  const durations = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
  const { files: chosen, notes, needsBuild } = chooseTests({ changed, ...readGraph(files, read), durations });
  const count = `${changed.length} files changed since ${name}: ${chosen.length} test files run`;
  return { files: chosen, notes: [count, ...notes], needsBuild };
}
