// npm run mutate -- [FOLDER …] [--mutants N] [--seed N] [--jobs N]: changes one comparison, boundary or constant of a production file at
// a time, and runs the tests of its folder. A mutant that lives is a line no cheap test watches. Works in copies of the repository.
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureInstalled, root } from './setup.mjs';

/** Folders of many decisions, each with its own tests. Kernels and generated tables are checked against references instead. */
const FOLDERS = [
  'src/chat',
  'src/gateway',
  'src/kv-cache',
  'src/memory/documents',
  'src/memory/lexical',
  'src/memory/search',
  'src/memory/sessions',
  'src/runtime/requests',
  'src/sampling',
  'src/server/wire',
];
const RULES = [
  [/ === /g, ' !== '],
  [/ !== /g, ' === '],
  [/ < /g, ' <= '],
  [/ > /g, ' >= '],
  [/ <= /g, ' < '],
  [/ >= /g, ' > '],
  [/ && /g, ' || '],
  [/ \|\| /g, ' && '],
  [/ \+ 1\b/g, ' - 1'],
  [/ - 1\b/g, ' + 1'],
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
  [/\bMath\.min\b/g, 'Math.max'],
  [/\bMath\.max\b/g, 'Math.min'],
  [/ \?\? /g, ' && '],
];
/** A mutant that loops is as dead as one that fails. */
const TIMEOUT_MS = 90_000;
/** What tests read beside the sources. */
const COPIED = ['src', 'test', 'schemas', 'datasets', 'package.json', 'vitest.config.ts', 'tsconfig.json'];
const LINKED = ['node_modules', 'dist', 'prebuilds', 'dashboard', 'docs', 'scripts', 'bin', 'examples', 'README.md'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    mutants: { type: 'string', default: '200' },
    seed: { type: 'string', default: new Date().toISOString().slice(0, 10).replaceAll('-', '') },
    jobs: { type: 'string', default: String(availableParallelism()) },
  },
});
const [mutants, seed, jobs] = ['mutants', 'seed', 'jobs'].map((name) => readCount(name, values[name]));
const folders = (positionals.length > 0 ? positionals : FOLDERS).map((folder) => folder.replace(/\/$/, ''));

function readCount(name, text) {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count > 0) return count;
  console.error(`error: --${name} is a whole number from 1, not ${JSON.stringify(text)}`);
  process.exit(2);
}

/** Uniform numbers below 1 from a seed (mulberry32): a seed names the same mutants on every machine. */
function createRandom(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Types and comments have the same words and change nothing. */
const isCode = (line) =>
  !/^\s*(?:\*|\/\/|\/\*|import\b|export type\b|export interface\b|type\b|interface\b|readonly\b)/.test(line) &&
  !/^\s*[\w$]+\??: .*\b(?:true|false)\b[^=(]*;$/.test(line);

function listSites(folder) {
  const absolute = join(root, folder);
  if (!existsSync(absolute)) {
    console.error(`error: there is no folder ${folder}`);
    process.exit(2);
  }
  const names = readdirSync(absolute, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !/\.(?:test|contract|d)\.ts$/.test(name) && !name.includes('assembly'),
  );
  return names.toSorted().flatMap((name) => {
    const text = readFileSync(join(absolute, name), 'utf8');
    return RULES.flatMap(([pattern, to]) =>
      [...text.matchAll(pattern)].flatMap(({ index, 0: from }) => {
        const line = text.slice(text.lastIndexOf('\n', index) + 1, text.indexOf('\n', index));
        // ` < 2` is a comparison; `Record<…>` and arrows have no spaces on both sides.
        return isCode(line) ? [{ folder, file: join(folder, name), index, from, to, line: line.trim() }] : [];
      }),
    );
  });
}

/** The folders take turns, so that a large one does not hide the others. */
function chooseMutants() {
  const random = createRandom(seed);
  const left = folders.map(listSites);
  const chosen = [];
  while (chosen.length < mutants && left.some((sites) => sites.length > 0)) {
    for (const sites of left) {
      if (sites.length === 0 || chosen.length >= mutants) continue;
      chosen.push(...sites.splice(Math.floor(random() * sites.length), 1));
    }
  }
  return chosen;
}

function makeCopy(name) {
  const parent = join(root, '.cache/mutate');
  const copy = join(parent, name);
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(join(copy, '.cache'), { recursive: true });
  for (const path of COPIED) cpSync(join(root, path), join(copy, path), { recursive: true });
  for (const path of LINKED) {
    if (existsSync(join(root, path))) symlinkSync(join(root, path), join(copy, path), 'junction');
  }
  const modules = join(root, '.cache/tools');
  if (existsSync(modules)) symlinkSync(modules, join(copy, '.cache/tools'), 'junction');
  // Suites that lie beside a checkout lie beside its copies.
  const shared = join(root, '../shared');
  if (existsSync(shared) && !existsSync(join(parent, 'shared')))
    symlinkSync(shared, join(parent, 'shared'), 'junction');
  return copy;
}

/** Whether the tests of a folder pass. */
function passes(copy, folder) {
  return new Promise((resolve) => {
    const vitest = join(root, 'node_modules/vitest/vitest.mjs');
    const args = [vitest, 'run', `${folder}/`, '--root', copy, '--bail', '1', '--maxWorkers', '1', '--reporter', 'dot'];
    // A group of its own: a mutant that loops leaves workers behind otherwise.
    const child = spawn(process.execPath, args, { cwd: copy, stdio: 'ignore', detached: true });
    const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), TIMEOUT_MS);
    child.on('close', (status) => {
      clearTimeout(timer);
      resolve(status === 0);
    });
  });
}

ensureInstalled();
const queue = chooseMutants();
const total = queue.length;
const broken = new Set();
const survivors = [];
let tried = 0;

/** Each worker owns a copy. A folder whose own tests fail would count every mutant as killed. */
async function work(name) {
  const copy = makeCopy(name);
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
    const path = join(copy, mutant.file);
    const text = readFileSync(path, 'utf8');
    const { index, from, to } = mutant;
    writeFileSync(path, text.slice(0, index) + to + text.slice(index + from.length));
    const isAlive = await passes(copy, mutant.folder);
    writeFileSync(path, text);
    tried++;
    if (!isAlive) continue;
    survivors.push(mutant);
    const number = text.slice(0, index).split('\n').length;
    console.log(
      `lived: ${relative('.', mutant.file)}:${number}: ${from.trim()} → ${to.trim()} | ${mutant.line.slice(0, 120)}`,
    );
  }
}

const baseline = makeCopy('baseline');
const unchecked = [...folders];
const checkFolders = async () => {
  for (let folder = unchecked.shift(); folder !== undefined; folder = unchecked.shift()) {
    if (!(await passes(baseline, folder))) broken.add(folder);
  }
};
await Promise.all(Array.from({ length: jobs }, checkFolders));
if (broken.size > 0) {
  console.error(`error: the tests of ${[...broken].join(', ')} fail without any change`);
  process.exit(1);
}
console.log(`${total} mutants of seed ${seed} in ${folders.length} folders`);
await Promise.all(Array.from({ length: jobs }, (_, index) => work(String(index))));
rmSync(join(root, '.cache/mutate'), { recursive: true, force: true });
const byFolder = Object.fromEntries(
  folders.map((folder) => [folder, survivors.filter((mutant) => mutant.folder === folder).length]),
);
const score = Number(((tried - survivors.length) / Math.max(1, tried)).toFixed(3));
console.log(JSON.stringify({ mutants: tried, killed: tried - survivors.length, score, seed, lived: byFolder }));
