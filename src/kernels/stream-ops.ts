import type { Offset } from './arena-alignment.ts';

/** Arguments of `mixStreams`. Streams are blocks of rows, one after the other; every token has coefficients of its own. */
export interface MixStreamsOp {
  /** f32[numOut × numRows × dim] */
  base: Offset;
  /** f32[numIn × numRows × dim] */
  x: Offset;
  /** f32[numRows × numOut × numIn] */
  coefficients: Offset;
  /** Added to every coefficient. */
  shift: number;
  /** f32[numOut × numRows × dim], not `x`; may be `base`. */
  out: Offset;
  numOut: number;
  numIn: number;
  numRows: number;
  dim: number;
}

/** Arguments of `matchLengths`. */
export interface MatchLengthsOp {
  /** f32[numRows × dim], scaled in place. */
  x: Offset;
  /** f32[numRows × dim]: rows of the lengths to match. */
  target: Offset;
  numRows: number;
  dim: number;
}

/** Arguments of `sparsify`. */
export interface SparsifyOp {
  /** f32[numRows × dim], changed in place; dim is at least 2. */
  x: Offset;
  numRows: number;
  dim: number;
  /** Standard deviations above the mean. */
  threshold: number;
}
