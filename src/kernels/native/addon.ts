/** Incremented with every change of records, layouts or the addon's functions; must match c/pack.h. */
export const NATIVE_ABI = 7;

/** The functions of the addon (c/addon.c). */
export interface NativeAddon {
  /** NATIVE_ABI of its sources. */
  readonly abi: number;
  createArena(sizeBytes: number): ArrayBuffer;
  mapFile(arena: ArrayBuffer, offset: number, sizeBytes: number, file: number, fileOffset: number): boolean;
  clearMemory(arena: ArrayBuffer, offset: number, sizeBytes: number): void;
  prepareMemory(arena: ArrayBuffer, offset: number, sizeBytes: number): void;
  startPool(
    arena: ArrayBuffer,
    numThreads: number,
    scratchAt: number,
    scratchBytes: number,
    grid: Int8Array,
    spins: number,
  ): object;
  run(pool: object, program: Float64Array, numOps: number): void;
  stopPool(pool: object): void;
}

export interface NativeBuild {
  readonly addon: NativeAddon;
  /** Its instruction set. */
  readonly build: string;
}
