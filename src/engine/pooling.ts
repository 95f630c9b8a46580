/** How the hidden states of a sequence become one vector: their mean, or that of the last or the first token. */
export type Pooling = 'mean' | 'last' | 'cls';

export const POOLINGS: readonly Pooling[] = ['mean', 'last', 'cls'];

/** Positions that count, of a sequence of `length` tokens: from the first up to before the second. */
const RANGES: Readonly<Record<Pooling, (length: number) => readonly [number, number]>> = {
  mean: (length) => [0, length],
  last: (length) => [length - 1, length],
  cls: () => [0, 1],
};

/** Rows of hidden states, by position. */
export interface PooledRows {
  readonly first: number;
  readonly numRows: number;
}

/** Pools the hidden states of one sequence as they are computed. */
export interface Pooler {
  /** Which of the positions from `start` to before `end` are needed; those it has had are not, though they be computed again. */
  wanted(start: number, end: number): PooledRows;
  /** Takes the rows that were last wanted, in order: sums do not depend on how a sequence was cut. */
  add(rows: PooledRows, hidden: Float32Array): void;
  /** Of all positions that count. */
  result(): Float32Array;
}

export function createPooler(pooling: Pooling, length: number): Pooler {
  const [from, to] = RANGES[pooling](length);
  let next = from;
  let sums: Float64Array | null = null;
  return {
    wanted(start, end) {
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
