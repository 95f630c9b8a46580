import type { AddressBits } from './memory64.ts';

/** The environment of the WASM pack: compiled kernels and threads to run them. */
export interface WasmPlatform {
  /** Whether the engine and the platform have memories with 64-bit addresses. */
  readonly hasMemory64: boolean;
  /** The fastest build for this engine and processor, compiled once and shared by threads. Addresses have 32 bits by default. */
  loadModule(addressBits?: AddressBits): Promise<WasmModule>;
  /** Starts a thread that runs the module on the shared memory: calls `help`, and `abandon` if that throws. */
  spawnHelper(start: HelperStart): HelperThread;
}

/** A compiled module and its build: `signed-dot` is for Arm, whose dot product multiplies signed bytes. */
export interface WasmModule {
  readonly module: WebAssembly.Module;
  readonly build: 'signed-dot' | 'relaxed-simd' | 'simd128';
}

/** Start parameters of a helper thread. */
export interface HelperStart {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  /** Arguments of `help`: this thread's scratch, and the counter of running threads. BigInt if addresses have 64 bits. */
  readonly scratch: number | bigint;
  readonly started: number | bigint;
}

/** A thread that computes alongside the calling one. */
export interface HelperThread {
  /** Rejects if the thread ends before it is stopped. */
  readonly failed: Promise<never>;
  /** From now on, the thread does not keep the process alive. */
  detach(): void;
  terminate(): Promise<void>;
}
