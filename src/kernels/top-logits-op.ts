import type { Offset } from './arena-alignment.ts';

/** The best logits of each row: enough to sample from most rows. */
export interface TopLogitsOp {
  /** f32[numRows × vocabSize] */
  logits: Offset;
  numRows: number;
  vocabSize: number;
  /** 1 to `MAX_TOP`, at most vocabSize */
  k: number;
  /** f32[numRows × k], largest first; ties by lower id. */
  values: Offset;
  /** int32[numRows × k] */
  ids: Offset;
  /**
   * f32[numRows × TOP_STATS]: the largest value, the sum of exp(value - largest) to `TOP_SUM_TOLERANCE`, and the number of
   * NaN and +Infinity values; if there are any, the others are undefined. -Infinity is a mask and adds nothing.
   */
  stats: Offset;
  /** f32[numRows × topScratch(vocabSize)] that the pack may overwrite. */
  scratch: Offset;
}

/** Largest k of `topLogits`. */
export const MAX_TOP = 256;
/** Floats per row of `TopLogitsOp.stats`. */
export const TOP_STATS = 3;
/** Values per block with one maximum, and blocks per chunk of a thread; must match the kernels. */
const TOP_BLOCK = 64;
const TOP_CHUNK = 4096;

/** Scratch floats of `topLogits` per row: one maximum per block, three numbers per chunk. */
export function topScratch(vocabSize: number): number {
  return Math.ceil(vocabSize / TOP_BLOCK) + 3 * Math.ceil(vocabSize / TOP_CHUNK);
}
