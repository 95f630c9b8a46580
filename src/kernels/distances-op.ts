import type { Offset } from './arena-alignment.ts';

/** One vector against many. */
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
   * nearest, ties to even, at most 127, in f32; sums of products of integers are exact. A query that is not finite gives NaN.
   */
  format: 'f32' | 'int8';
  /** f32, by vector; only for int8. */
  scales: Offset | null;
  /** int32[numVectors]: which vectors; null: 0 to numVectors - 1. */
  ids: Offset | null;
  /** 'dot': the larger the nearer, and the cosine where both are normalized. 'l2': the square of the distance. */
  metric: 'dot' | 'l2';
  /** f32[numVectors] */
  out: Offset;
}

/** Longest vector of `distances`: sums of products of bytes stay below 2^31. */
export const MAX_VECTOR_DIM = 16384;
