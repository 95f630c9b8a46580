import { RuvLLMError } from '../../../core/errors.ts';
import { type AddressBits, hasMemory64 } from '../../../kernels/wasm/memory64.ts';
import type { HelperStart, HelperThread, WasmModule, WasmPlatform } from '../../../kernels/wasm/platform.ts';
import { hasSignedDot } from '../../../kernels/wasm/signed-dot-probe.ts';
import { onWorkerError } from '../worker-scope.ts';

/** Whole literals, so that bundlers find the files. They lie beside the built module. */
const URLS: Readonly<Record<WasmModule['build'], Readonly<Record<AddressBits, () => URL>>>> = {
  'signed-dot': {
    32: () => new URL('./kernels.dot.wasm', import.meta.url),
    64: () => new URL('./kernels.dot64.wasm', import.meta.url),
  },
  'relaxed-simd': {
    32: () => new URL('./kernels.relaxed.wasm', import.meta.url),
    64: () => new URL('./kernels.relaxed64.wasm', import.meta.url),
  },
  simd128: {
    32: () => new URL('./kernels.simd.wasm', import.meta.url),
    64: () => new URL('./kernels.simd64.wasm', import.meta.url),
  },
};
/** The fastest first. */
const BUILDS = Object.keys(URLS) as WasmModule['build'][];

async function fetchBytes(url: URL): Promise<ArrayBuffer> {
  try {
    const response = await fetch(url);
    if (response.ok) return await response.arrayBuffer();
    throw new Error(`the server answered ${response.status}`);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RuvLLMError('kernel_failed', `the kernels at ${url.pathname} cannot be loaded: ${reason}`, { cause });
  }
}

async function compile(addressBits: AddressBits): Promise<WasmModule> {
  for (const build of BUILDS) {
    if (build === 'signed-dot' && !hasSignedDot()) continue;
    const bytes = await fetchBytes(URLS[build][addressBits]());
    if (WebAssembly.validate(bytes)) return { module: await WebAssembly.compile(bytes), build };
  }
  throw new RuvLLMError('unsupported', 'this browser has no WebAssembly SIMD');
}

/** WASM kernels in a worker of a page: modules from the server of the library, helpers on nested workers. */
export function createBrowserWasmPlatform(): WasmPlatform {
  const compiled: Partial<Record<AddressBits, Promise<WasmModule>>> = {};
  return {
    hasMemory64: hasMemory64(),
    loadModule: (addressBits = 32) => (compiled[addressBits] ??= compile(addressBits)),
    spawnHelper,
  };
}

function spawnHelper(start: HelperStart): HelperThread {
  const worker = new Worker(new URL('./kernel-helper.js', import.meta.url), { type: 'module', name: 'ruvllm-kernels' });
  const failed = new Promise<never>((_, reject) => {
    onWorkerError(worker, (reason) => reject(new RuvLLMError('kernel_failed', `a kernel thread ${reason}`)));
  });
  failed.catch(() => {}); // watched by the pack; an unwatched rejection would be reported by the page
  worker.postMessage(start);
  return {
    failed,
    detach() {},
    async terminate() {
      worker.terminate();
    },
  };
}
