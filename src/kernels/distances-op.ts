import type { Offset } from './arena-alignment.ts';

/** Distances between one vector and many. */
export interface DistancesOp {
  /** f32[dim] */
  query: Offset;
  /** f32[… × dim] or int8[… × dim] */
  vectors: Offset;
  numVectors: number;
  /** 1 to `MAX_VECTOR_DIM` */
  dim: number;
  /**
   * 'int8': a value is q * scales[vector]. The query is rounded too: scale = largest magnitude / 127, q = x / scale to
   * nearest, ties to even, at most 127, in f32; sums of integer products are exact. A query that is not finite gives NaN.
   */
  format: 'f32' | 'int8';
  /** f32 per vector; only for int8. */
  scales: Offset | null;
  /** int32[numVectors]: the vectors to compare; null: 0 to numVectors - 1. */
  ids: Offset | null;
  /** 'dot': larger is nearer; equals the cosine of normalized vectors. 'l2': the squared distance. */
  metric: 'dot' | 'l2';
  /** f32[numVectors] */
  out: Offset;
}

/** Longest vector of `distances`: sums of int8 products stay below 2^31. */
export const MAX_VECTOR_DIM = 16384;
