import type { Offset } from './arena-alignment.ts';

/** The best of each row of logits: what a sampler needs of most rows. */
export interface TopLogitsOp {
  /** f32[numRows × vocabSize] */
  logits: Offset;
  numRows: number;
  vocabSize: number;
  /** 1 to `MAX_TOP`, at most vocabSize */
  k: number;
  /** f32[numRows × k], largest first; of equal ones the lower id first. */
  values: Offset;
  /** int32[numRows × k] */
  ids: Offset;
  /**
   * f32[numRows × TOP_STATS]: the largest value, the sum of exp(value - largest) to `TOP_SUM_TOLERANCE`, and how many values are
   * NaN or +Infinity: where there are any, nothing else is defined. -Infinity is a mask and adds nothing.
   */
  stats: Offset;
  /** f32[numRows × topScratch(vocabSize)] that the pack may overwrite. */
  scratch: Offset;
}

/** Largest k of `topLogits`. */
export const MAX_TOP = 256;
/** Floats of a row in `TopLogitsOp.stats`. */
export const TOP_STATS = 3;
/** Values that share a maximum, and such blocks that a thread takes at a time; kernels have the same numbers. */
const TOP_BLOCK = 64;
const TOP_CHUNK = 4096;

/** Floats of scratch that `topLogits` needs for a row: a maximum for each block, three numbers for each chunk. */
export function topScratch(vocabSize: number): number {
  return Math.ceil(vocabSize / TOP_BLOCK) + 3 * Math.ceil(vocabSize / TOP_CHUNK);
}
