import type { TensorTypeName } from '../core/tensor-type.ts';

/** Weights of squared errors, one per value; null: all are equal. */
export type ErrorWeights = Float32Array | null;

/** How a format stores values: each as a level of a grid, which a group of values shares. */
export interface LevelCoding {
  /** Levels per value. Within a group, decoded values never fall, or never rise, from level to level. */
  readonly numLevels: number;
  /** Consecutive values for which equal levels decode to equal values; divides the block. */
  readonly groupSize: number;
  /** Overwrites the levels of the block at `at`, whose scales are already encoded; `levels` has one entry per value. */
  write(levels: Uint8Array, out: Uint8Array, at: number): void;
}

/** One tensor element type: the values per block and the encoding of a block. */
export interface QuantFormat {
  readonly name: TensorTypeName;
  /** The type number in GGUF files. */
  readonly ggufId: number;
  readonly blockSize: number;
  readonly blockBytes: number;
  /** Writes `numBlocks * blockSize` values to `out` from `outOffset` on. */
  dequantize(bytes: Uint8Array, byteOffset: number, out: Float32Array, outOffset: number, numBlocks: number): void;
  /**
   * Only for formats that can be written. Writes `numBlocks * blockBytes` bytes. `weights` has the weight of the squared error of
   * each entry of `values`; null: all are equal.
   */
  quantize?(
    values: Float32Array,
    valueOffset: number,
    out: Uint8Array,
    outOffset: number,
    numBlocks: number,
    weights: ErrorWeights,
  ): void;
  /** Only for formats in which levels can be chosen one by one for fixed scales. */
  readonly levelCoding?: LevelCoding;
  /**
   * Only for formats whose values are small integers times a scale per 16 of them: decodes one block to `blockSize`
   * levels and `blockSize / 16` scales. Kernel packs load these formats through it.
   */
  decodeLevels?: DecodeLevels;
}

/** value[i] = scales[scaleOffset + (i >> 4)] * levels[levelOffset + i] */
export type DecodeLevels = (
  bytes: Uint8Array,
  byteOffset: number,
  levels: Int8Array,
  levelOffset: number,
  scales: Float32Array,
  scaleOffset: number,
) => void;
