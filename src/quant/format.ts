import type { TensorTypeName } from '../core/tensor-type.ts';

/** One tensor element type: the values per block and the encoding of a block. */
export interface QuantFormat {
  readonly name: TensorTypeName;
  /** The type number in GGUF files. */
  readonly ggufId: number;
  readonly blockSize: number;
  readonly blockBytes: number;
  /** Writes `numBlocks * blockSize` values to `out` from `outOffset` on. */
  dequantize(bytes: Uint8Array, byteOffset: number, out: Float32Array, outOffset: number, numBlocks: number): void;
  /** Only for formats that can be written. Writes `numBlocks * blockBytes` bytes. */
  quantize?(values: Float32Array, valueOffset: number, out: Uint8Array, outOffset: number, numBlocks: number): void;
}
