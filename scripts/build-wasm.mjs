// npm run build:wasm: the WASM kernels in wasm/, from src/kernels/wasm/assembly. They are in the repository with the hash of their
// sources, so that only who changes a source compiles them; a test compiles them again and compares.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { nodeTool, requireWritable, root } from './setup.mjs';

const assembly = join(root, 'src/kernels/wasm/assembly');
const transform = join(root, 'scripts/wasm64-transform.mjs');
const folder = join(root, 'wasm');
const stamp = join(folder, 'sources.sha256');

// One source, three builds: for engines whose relaxed dot product is Arm's SDOT, for others with relaxed SIMD, plain SIMD128.
// Each also with 64-bit addresses.
const BUILDS = [
  { name: 'kernels.dot', relaxed: true, signedDot: true },
  { name: 'kernels.relaxed', relaxed: true, signedDot: false },
  { name: 'kernels.simd', relaxed: false, signedDot: false },
].flatMap((build) => [32, 64].map((addressBits) => ({ ...build, addressBits })));

/** Hash of all that decides the bytes of the kernels: sources, this script with its flags, and the compiler's version. */
export function hashWasmSources() {
  const sources = readdirSync(assembly, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.startsWith('small'))
    .toSorted();
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const hash = createHash('sha256').update(devDependencies.assemblyscript);
  for (const path of [...sources.map((name) => join(assembly, name)), transform, import.meta.filename]) {
    hash.update('\0').update(readFileSync(path, 'utf8').replaceAll('\r\n', '\n'));
  }
  return hash.digest('hex');
}

export const isWasmCurrent = () => existsSync(stamp) && readFileSync(stamp, 'utf8').trim() === hashWasmSources();

function compile({ name, relaxed, signedDot, addressBits }, out) {
  const features = ['simd', 'threads', ...(relaxed ? ['relaxed-simd'] : [])];
  const flags = [
    '-O3 --noAssert --runtime stub --importMemory --sharedMemory --initialMemory 1 --maximumMemory 65536',
    '--disableWarning 112', // v128 in function signatures: these never leave the module.
    ...features.map((feature) => `--enable ${feature}`),
    `--use SIGNED_DOT=${signedDot ? 1 : 0}`,
  ].flatMap((text) => text.split(' '));
  const wide = addressBits === 64 ? ['--transform', transform] : [];
  const target = join(out, `${name}${addressBits === 64 ? '64' : ''}.wasm`);
  const args = [join(assembly, 'index.ts'), ...flags, ...wide, '-o', target];
  return new Promise((resolve, reject) => {
    const child = spawn(...nodeTool('assemblyscript/bin/asc.js', ...args), { cwd: root, stdio: 'inherit' });
    child.on('error', reject);
    child.on('close', (status) => (status === 0 ? resolve() : reject(new Error(`asc failed on ${name}`))));
  });
}

/** Compiles all builds into `out`. */
export async function compileWasm(out = folder) {
  mkdirSync(out, { recursive: true });
  const queue = [...BUILDS];
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await compile(next, out);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
}

/** Compiles the kernels if their sources have changed. */
export async function buildWasm({ force = false } = {}) {
  if (!force && isWasmCurrent()) return;
  requireWritable('wasm', 'the WASM kernels must be compiled there');
  console.error('Compiling the WASM kernels …');
  await compileWasm();
  writeFileSync(stamp, `${hashWasmSources()}\n`);
}

if (process.argv[1] && import.meta.filename === process.argv[1]) await buildWasm({ force: true });
