import type { Offset } from './arena-alignment.ts';

/** Distances of blocks, in values. */
export interface BlockStrides {
  readonly outer: number;
  readonly inner: number;
}

/** Arguments of `copyBlocks`: numOuter × numInner blocks of `width` values. Blocks of `out` do not overlap each other or `x`. */
export interface CopyBlocksOp {
  /** The first block. */
  x: Offset;
  out: Offset;
  numOuter: number;
  numInner: number;
  width: number;
  from: BlockStrides;
  to: BlockStrides;
}
