/** The best logits of a row and the sum over all of it: enough to sample without reading the row. */
export interface TopLogits {
  /** Best first; of equal values, the lower id first. */
  readonly ids: Int32Array;
  /** Logits of these ids. */
  readonly values: Float32Array;
  /** The largest value of the row. */
  readonly max: number;
  /** Sum of exp(value - max) over the row, within `TOP_SUM_TOLERANCE`. */
  readonly sumExp: number;
  /** Number of NaN and +Infinity values; if not 0, the other fields are meaningless. */
  readonly numBad: number;
}

/** Kernels compute powers in f32: off by 1e-7, or by 12 × 2^-24 in rows so flat that the tail has all the weight. */
export const TOP_SUM_TOLERANCE = 2 ** -19;
