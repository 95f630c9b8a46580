/** How the hidden states of a sequence become one vector: their mean, or the state of the last or first token. */
export type Pooling = 'mean' | 'last' | 'cls';

export const POOLINGS: readonly Pooling[] = ['mean', 'last', 'cls'];

/** Pooled positions of a sequence of `length` tokens: [start, end). */
const RANGES: Readonly<Record<Pooling, (length: number) => readonly [number, number]>> = {
  mean: (length) => [0, length],
  last: (length) => [length - 1, length],
  cls: () => [0, 1],
};

/** A range of hidden-state rows, by position. */
export interface PooledRows {
  readonly first: number;
  readonly numRows: number;
}

/** Pools the hidden states of one sequence as they are computed. */
export interface Pooler {
  /** The rows of [start, end) that are still needed; recomputed rows that were pooled already are not. */
  neededRows(start: number, end: number): PooledRows;
  /** Takes the rows of the last `neededRows` call, in order: the sum does not depend on how a sequence was split. */
  add(rows: PooledRows, hidden: Float32Array): void;
  /** The pooled vector, once all positions are added. */
  result(): Float32Array;
}

export function createPooler(pooling: Pooling, length: number): Pooler {
  const [from, to] = RANGES[pooling](length);
  let next = from;
  let sums: Float64Array | null = null;
  return {
    neededRows(start, end) {
      const first = Math.max(start, next);
      return { first, numRows: Math.max(0, Math.min(end, to) - first) };
    },
    add({ numRows }, hidden) {
      if (numRows === 0) return;
      const dim = hidden.length / numRows;
      sums ??= new Float64Array(dim);
      for (let row = 0; row < numRows; row++) {
        for (let i = 0; i < dim; i++) sums[i]! += hidden[row * dim + i]!;
      }
      next += numRows;
    },
    result: () => Float32Array.from(sums!, (sum) => sum / (to - from)),
  };
}
