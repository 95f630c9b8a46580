import type { Offset } from './arena-alignment.ts';

/** Several adapters in one step are several operations, each with the rows of its tokens. */
export interface LowRankDeltaOp {
  /** f32[… × numCols] */
  x: Offset;
  /** Rows to process: the length of `rows` if there is one. */
  numTokens: number;
  numCols: number;
  /** f32[rank × numCols] */
  a: Offset;
  /** f32[numRows × rank] */
  b: Offset;
  /** 1 to `MAX_RANK` */
  rank: number;
  scale: number;
  /** int32[numTokens]: rows of x and out, none twice; null: 0 to numTokens - 1. */
  rows: Offset | null;
  /** f32[… × numRows] */
  out: Offset;
  numRows: number;
  /** f32[numTokens × rank] that the pack may overwrite. */
  scratch: Offset;
}

/** Highest rank of `lowRankDelta`; packs reserve scratch for it. */
export const MAX_RANK = 64;
