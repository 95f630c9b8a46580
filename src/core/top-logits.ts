/** The best logits of one row, and what the rest of it adds up to: enough to sample from without reading the row. */
export interface TopLogits {
  /** Best first; of equal values the lower id first. */
  readonly ids: Int32Array;
  /** Of these ids. */
  readonly values: Float32Array;
  /** The largest value of the row. */
  readonly max: number;
  /** exp(value - max) summed over the whole row, within `TOP_SUM_TOLERANCE` of itself. */
  readonly sumExp: number;
  /** Values that are NaN or +Infinity; where there are any, nothing else here means anything. */
  readonly numBad: number;
}

/** Kernels take powers in f32: off by 1e-7, and by 12 × 2^-24 where a row is so flat that its tail has all the weight. */
export const TOP_SUM_TOLERANCE = 2 ** -19;
