import { readFile } from 'node:fs/promises';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { RuvLLMError } from '../../../core/errors.ts';
import { type AddressBits, hasMemory64 } from '../../../kernels/wasm/memory64.ts';
import type { HelperStart, HelperThread, WasmModule, WasmPlatform } from '../../../kernels/wasm/platform.ts';
import { hasSignedDot } from '../../../kernels/wasm/signed-dot-probe.ts';
import { PACKAGE_FOLDER } from '../files/package-folder.ts';

const KERNELS = new URL('wasm/', PACKAGE_FOLDER);

// The whole life of a helper thread; all its work happens inside the module.
const HELPER = `
const { workerData } = require('node:worker_threads');
const { module, memory, scratch, started } = workerData;
const { help, abandon } = new WebAssembly.Instance(module, { env: { memory } }).exports;
try {
  help(scratch, started);
} catch (error) {
  abandon();
  throw error;
}
`;

const BUILDS = [
  { name: 'kernels.dot', build: 'signed-dot' },
  { name: 'kernels.relaxed', build: 'relaxed-simd' },
  { name: 'kernels.simd', build: 'simd128' },
] as const;

const NODE_MAJOR = Number(process.versions.node.split('.')[0]);
let numCompiling = 0;

/**
 * Compiles kernels straight with the optimizing compiler: the baseline tier runs these loops 2-3 times slower, and the switch would
 * come in the middle of the first answer. Flags are global and set by version, because an engine that does not know one complains on
 * stderr or, worse, crashes later.
 */
async function compileOptimized(bytes: Uint8Array<ArrayBuffer>): Promise<WebAssembly.Module> {
  // From Node 25 on that compiler dies without the baseline tier's feedback; there the switch is only made early.
  if (NODE_MAJOR >= 25) setFlagsFromString('--wasm-tiering-budget=10000');
  else setFlagsFromString('--no-liftoff');
  if (NODE_MAJOR > 22) return WebAssembly.compile(bytes);
  // Here a memory's SQLite is WebAssembly, too: in this way each start of it takes a second of processor time. So everything is
  // compiled now, and other modules get the default, two flags of which --no-liftoff has changed.
  numCompiling++;
  setFlagsFromString('--no-wasm-lazy-compilation');
  try {
    return await WebAssembly.compile(bytes);
  } finally {
    if (--numCompiling === 0)
      for (const flag of ['--liftoff', '--wasm-dynamic-tiering', '--wasm-lazy-compilation']) setFlagsFromString(flag);
  }
}

/** Why `build` is not for this machine, null where it is. The kernels of signed-dot count on the 32 vector registers of Arm. */
function findObstacle(build: WasmModule['build']): string | null {
  if (build !== 'signed-dot' || (process.arch === 'arm64' && hasSignedDot())) return null;
  return `the signed-dot kernels need arm64 and an exact dot product of signed bytes, this is ${process.arch}`;
}

async function compile(allowed: readonly WasmModule['build'][], addressBits: AddressBits): Promise<WasmModule> {
  // Node 20 knows relaxed SIMD but hides it; later versions have it on.
  if (NODE_MAJOR < 22) setFlagsFromString('--experimental-wasm-relaxed-simd');
  let obstacle: string | null = null;
  for (const { name, build } of BUILDS) {
    if (!allowed.includes(build)) continue;
    obstacle = findObstacle(build);
    if (obstacle !== null) continue;
    const file = `${name}${addressBits === 64 ? '64' : ''}.wasm`;
    const bytes = await readFile(new URL(file, KERNELS)).catch((cause: unknown) => {
      throw new RuvLLMError('kernel_failed', `${file} is missing: reinstall ruvllm, or in a clone npm run build:wasm`, {
        cause,
      });
    });
    if (WebAssembly.validate(bytes)) return { module: await compileOptimized(bytes), build };
  }
  throw new RuvLLMError('unsupported', obstacle ?? 'this JavaScript engine has no WebAssembly SIMD');
}

/** WASM kernels on Node: modules from wasm/, helpers on worker threads. `allowed` narrows the builds to choose from. */
export function createNodeWasmPlatform(
  allowed: readonly WasmModule['build'][] = ['signed-dot', 'relaxed-simd', 'simd128'],
): WasmPlatform {
  const compiled: Partial<Record<AddressBits, Promise<WasmModule>>> = {};
  return {
    hasMemory64: hasMemory64(),
    loadModule: (addressBits = 32) => (compiled[addressBits] ??= compile(allowed, addressBits)),
    spawnHelper,
  };
}

function spawnHelper(start: HelperStart): HelperThread {
  const worker = new Worker(HELPER, { eval: true, workerData: start });
  let stopping = false;
  const failed = new Promise<never>((_, reject) => {
    worker.once('error', reject);
    worker.once('exit', (code) => {
      if (!stopping) reject(new RuvLLMError('kernel_failed', `a kernel thread ended with code ${code}`));
    });
  });
  failed.catch(() => {}); // watched by the pack; an unwatched rejection must not end the process
  return {
    failed,
    detach: () => worker.unref(),
    async terminate() {
      stopping = true;
      await worker.terminate();
    },
  };
}
