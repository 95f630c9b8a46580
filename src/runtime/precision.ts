/** Numeric precision of weights or of the KV cache. */
export type Precision = 'fp32' | 'fp16' | 'bf16' | 'q8' | 'q4' | 'q4k';

/** Block formats carry their scales: 34 bytes for 32 values, 18 for 32, 144 for 256. */
const BYTES_PER_ELEMENT: Readonly<Record<Precision, number>> = {
  fp32: 4,
  fp16: 2,
  bf16: 2,
  q8: 34 / 32,
  q4: 18 / 32,
  q4k: 144 / 256,
};

/** Bytes one value takes on average, scales included. */
export function bytesPerElement(precision: Precision): number {
  return BYTES_PER_ELEMENT[precision];
}
