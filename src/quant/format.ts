import type { TensorTypeName } from '../core/tensor-type.ts';

/** Weights of squared errors, one per value; null: all are equal. */
export type ErrorWeights = Float32Array | null;

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
