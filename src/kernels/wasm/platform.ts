/** What the WASM pack needs from its surroundings: compiled kernels and threads that run them. */
export interface WasmPlatform {
  /** The fastest build for this engine and processor, compiled once; threads share it. */
  loadModule(): Promise<WasmModule>;
  /** Starts a thread that instantiates the module on the shared memory, calls its `help` export, and `abandon` if that throws. */
  spawnHelper(start: HelperStart): HelperThread;
}

/** A compiled module, and which build it is: `signed-dot` is for Arm, whose dot product multiplies signed bytes. */
export interface WasmModule {
  readonly module: WebAssembly.Module;
  readonly build: 'signed-dot' | 'relaxed-simd' | 'simd128';
}

/** What a helper thread is started with. */
export interface HelperStart {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  /** Arguments of `help`: this thread's scratch, and the counter of threads that are up. */
  readonly scratch: number;
  readonly started: number;
}

/** A thread that computes beside the calling one. */
export interface HelperThread {
  /** Rejects when the thread dies before it was told to stop. */
  readonly failed: Promise<never>;
  /** From now on the thread alone does not keep the process alive. */
  detach(): void;
  terminate(): Promise<void>;
}
