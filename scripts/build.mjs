// Builds dist/: the library, its command and its threads as bundles by rolldown, modules for browsers, the dashboard, the documentation.
// Types are checked by npm run check, and written by npm pack.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { buildWasm } from './build-wasm.mjs';
import { isAlive, withLock } from './lock.mjs';
import { ensureInstalled, requireWritable, root } from './setup.mjs';

const dist = join(root, 'dist');
const stamps = join(root, '.cache/build');

/**
 * The parts of dist/, each with what it is made of. `folder` is replaced as a whole, so that neither outputs of deleted sources stay nor
 * a process sees half a build.
 */
const PARTS = {
  library: {
    title: 'Building …',
    script: 'build-library.mjs',
    folder: 'lib',
    inputs: ['src', 'package-lock.json', 'scripts/build-library.mjs'],
  },
  browser: {
    title: 'Building the modules for browsers …',
    failure: 'ruvllm/browser was not built because the bundler failed (npm run build shows why).',
    script: 'build-browser.mjs',
    folder: 'browser-modules',
    inputs: ['src', 'wasm', 'package-lock.json', 'scripts/build-browser.mjs'],
  },
  dashboard: {
    title: 'Building the dashboard …',
    failure: 'The dashboard was not built because vite failed (npm run build shows why); the server runs without it.',
    script: 'build-dashboard.mjs',
    folder: 'dashboard',
    inputs: ['dashboard', 'src', 'package-lock.json', 'scripts/build-dashboard.mjs'],
  },
  tested: {
    title: 'Building what tests import …',
    script: 'build-library.mjs',
    args: ['tests'],
    parent: join(root, '.cache'),
    folder: 'tested',
    inputs: ['src', 'test', 'package-lock.json', 'scripts/build-library.mjs'],
  },
  docs: {
    title: 'Building the documentation …',
    failure: 'The documentation was not built (npm run build shows why); the server runs without it.',
    script: 'docs-site.mjs',
    folder: 'docs',
    inputs: ['docs', 'README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'examples/README.md', 'scripts/docs-site.mjs', 'scripts/docs.css'], // prettier-ignore
  },
};

/** Hash of names, sizes and times of a part's inputs: also an older file, or one less, is a change. */
function hashInputs(inputs) {
  const hash = createHash('sha256').update(process.version);
  const add = (path) => {
    const { size, mtimeMs } = statSync(join(root, path));
    hash.update(`${path}\0${size}\0${mtimeMs}\n`);
  };
  for (const input of inputs) {
    const path = join(root, input);
    if (!statSync(path).isDirectory()) add(input);
    else for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' }).toSorted()) if (isInput(name)) add(join(input, name)); // prettier-ignore
  }
  return hash.digest('hex');
}

const isInput = (name) => /\.\w+$/.test(name) && !/\.test\.tsx?$|(?:^|[\\/])node_modules[\\/]/.test(name);

/** Runs a script of the build; resolves to its status and output. */
function runScript(script, args) {
  return new Promise((done) => {
    const child = spawn(process.execPath, [resolve(root, 'scripts', script), ...args], { cwd: root });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('error', (error) => done({ status: 1, output: error.message }));
    child.on('close', (status) => done({ status: status ?? 1, output: output.trimEnd() }));
  });
}

/** Folders that killed builds left. */
function removeLeftovers() {
  for (const name of readdirSync(dist)) {
    const [, pid] = /^\..+-(\d+)$/.exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(dist, name), { recursive: true, force: true });
  }
}

/** Builds a part if its inputs have changed. Returns null, or what went wrong. */
async function buildPart(name, { force, scripts = {} }) {
  const { title, folder, inputs, parent = dist, args = [] } = PARTS[name];
  const script = scripts[name] ?? PARTS[name].script;
  const stamp = join(stamps, name);
  const out = join(parent, folder);
  const hash = hashInputs(inputs);
  if (!force && existsSync(out) && existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return null;
  console.error(title);
  const fresh = join(parent, `.${folder}-${process.pid}`);
  const old = join(parent, `.${folder}-old-${process.pid}`);
  const { status, output } = await runScript(script, [fresh, ...args]);
  if (status !== 0) {
    rmSync(fresh, { recursive: true, force: true });
    return output;
  }
  if (output !== '') console.error(output);
  rmSync(stamp, { force: true });
  if (existsSync(out)) renameSync(out, old);
  renameSync(fresh, out);
  rmSync(old, { recursive: true, force: true });
  writeFileSync(stamp, hash);
  return null;
}

/** The last lines of an output say what went wrong; the first ones of a full disk are a stack. */
function describeFailure(output) {
  const full = /ENOSPC|No space left|os error 28/.test(output);
  return full ? 'error: the disk is full, and dist/ must be built\nnext: free some space, then run the same command again' : output; // prettier-ignore
}

async function buildParts(names, { isOptional, ...options }) {
  const results = await Promise.all(names.map(async (name) => ({ name, problem: await buildPart(name, options) })));
  const failed = results.filter(({ problem }) => problem !== null);
  for (const { name, problem } of failed) console.error(isOptional ? PARTS[name].failure : describeFailure(problem));
  return failed.length === 0;
}

/** What tests import one by one, into .cache/tested. */
export function buildTested() {
  return withLock(join(root, '.cache/setup.lock'), async () => {
    const problem = await buildPart('tested', {});
    if (problem === null) return;
    console.error(problem);
    process.exit(1);
  });
}

/** The library, the command and the threads: what a server needs. Ends the process if that fails. */
export function buildLibrary({ force = false } = {}) {
  return withLock(join(root, '.cache/setup.lock'), async () => {
    await ensureInstalled();
    requireWritable('dist', 'the library must be built there');
    for (const folder of [dist, stamps]) mkdirSync(folder, { recursive: true });
    removeLeftovers();
    await buildWasm();
    if (!(await buildParts(['library'], { force, isOptional: false }))) process.exit(1);
  });
}

/** What pages need: a server picks it up when it is there. `isOptional`: a failure is one sentence, and nothing else is missing. */
export function buildPages({ force = false, isOptional = false, scripts = {} } = {}) {
  return withLock(join(root, '.cache/pages.lock'), async () => {
    const isBuilt = await buildParts(['browser', 'dashboard', 'docs'], { force, isOptional, scripts });
    if (!isBuilt && !isOptional) process.exit(1);
  });
}

export async function build({ force = false } = {}) {
  await buildLibrary({ force });
  await buildPages({ force });
}

if (process.argv[1] && import.meta.filename === process.argv[1]) await build({ force: true });
