import { RuvLLMError } from '../../../core/errors.ts';
import type { HelperStart, HelperThread, WasmModule, WasmPlatform } from '../../../kernels/wasm/platform.ts';
import { hasSignedDot } from '../../../kernels/wasm/signed-dot-probe.ts';
import { onWorkerError } from '../worker-scope.ts';

/** Whole literals, so that bundlers find the files. They lie beside the built module. */
const BUILDS: readonly { readonly build: WasmModule['build']; readonly url: () => URL }[] = [
  { build: 'signed-dot', url: () => new URL('./kernels.dot.wasm', import.meta.url) },
  { build: 'relaxed-simd', url: () => new URL('./kernels.relaxed.wasm', import.meta.url) },
  { build: 'simd128', url: () => new URL('./kernels.simd.wasm', import.meta.url) },
];

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

async function compile(): Promise<WasmModule> {
  for (const { build, url } of BUILDS) {
    if (build === 'signed-dot' && !hasSignedDot()) continue;
    const bytes = await fetchBytes(url());
    if (WebAssembly.validate(bytes)) return { module: await WebAssembly.compile(bytes), build };
  }
  throw new RuvLLMError('unsupported', 'this browser has no WebAssembly SIMD');
}

/** WASM kernels in a worker of a page: modules from the server of the library, helpers on nested workers. */
export function createBrowserWasmPlatform(): WasmPlatform {
  let compiled: Promise<WasmModule> | undefined;
  return { loadModule: () => (compiled ??= compile()), spawnHelper };
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
