// npm run build:native: the kernel pack in C, once per instruction set, into prebuilds/PLATFORM-ARCH. Optional: without a
// compiler everything works on WASM.
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root, run } from './setup.mjs';

const BUILDS = {
  x64: {
    baseline: [],
    avx2: ['-mavx2', '-mfma', '-mf16c'],
    avx512vnni: ['-march=icelake-server'],
    amx: ['-march=sapphirerapids'],
  },
  arm64: { baseline: [] },
};
const FLAGS = '-O3 -std=gnu11 -fPIC -shared -fvisibility=hidden -fno-math-errno -fno-trapping-math -ffp-contract=fast';

/** Returns null when built (or up to date), else why not. */
export function buildNative() {
  const builds = BUILDS[process.arch];
  if (process.platform !== 'linux' || builds === undefined)
    return `no native build for ${process.platform}-${process.arch}`;
  const headers = [
    join(dirname(process.execPath), '../include/node'),
    '/usr/include/node',
    '/usr/local/include/node',
  ].find((folder) => existsSync(join(folder, 'node_api.h')));
  if (headers === undefined) return "Node's headers (node_api.h) are not installed";
  const compiler = process.env.CC ?? 'cc';
  if (run(compiler, ['--version'], { stdio: 'ignore', throws: false }) !== 0) return `no C compiler (${compiler})`;
  const sources = join(root, 'src/kernels/native/c');
  const files = readdirSync(sources);
  const newest = Math.max(...files.map((file) => statSync(join(sources, file)).mtimeMs));
  const folder = join(root, `prebuilds/${process.platform}-${process.arch}`);
  mkdirSync(folder, { recursive: true });
  for (const [build, flags] of Object.entries(builds)) {
    const out = join(folder, `ruvllm-${build}.node`);
    if (existsSync(out) && statSync(out).mtimeMs > newest) continue;
    const inputs = files.filter((file) => file.endsWith('.c')).map((file) => join(sources, file));
    const args = [...FLAGS.split(' '), ...flags, `-I${headers}`, ...inputs, '-o', out, '-lpthread', '-lm'];
    if (run(compiler, args) !== 0) return `${compiler} failed on the ${build} build`;
  }
  return null;
}

if (process.argv[1] && import.meta.filename === process.argv[1]) {
  const problem = buildNative();
  if (problem !== null) {
    console.error(`error: ${problem}`);
    process.exitCode = 1;
  }
}
