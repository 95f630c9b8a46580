import { SMALL_KERNELS } from './small-bytes.ts';

let compiled: WebAssembly.Module | null = null;

/** Kernels for single vectors, on a memory that the caller lays out: `sign-search.ts` and `rotation.ts` describe them. */
export function createSmallKernels(memory: WebAssembly.Memory): WebAssembly.Exports {
  compiled ??= new WebAssembly.Module(Uint8Array.from(atob(SMALL_KERNELS), (char) => char.charCodeAt(0)));
  return new WebAssembly.Instance(compiled, { env: { memory } }).exports;
}
