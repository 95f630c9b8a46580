import type { Trace } from './next-token-logits.ts';

/** The differences of two traces of the same tokens. */
export interface Comparison {
  /** Relative error over all logits of all positions: |ours - theirs| / |theirs|, Euclidean. */
  error: number;
  /** The same for the worst single position. */
  worstRow: number;
  numTokens: number;
  sameTokens: number;
  /** Equal greedy tokens before the first difference. */
  sameFromStart: number;
  /** Largest gap between the other side's two candidates at a different choice; null if none differs. */
  worstTieGap: number | null;
}

export function compareTraces(ours: Trace, theirs: Trace): Comparison {
  let [worstRow, differences, squares] = [0, 0, 0];
  let sameTokens = 0;
  let sameFromStart = theirs.greedy.length;
  let worstTieGap: number | null = null;
  theirs.rows.forEach((their, r) => {
    const [difference, square] = rowDifference(ours.rows[r]!, their);
    worstRow = Math.max(worstRow, Math.sqrt(difference / square));
    differences += difference;
    squares += square;
  });
  theirs.greedy.forEach((token, i) => {
    const row = theirs.rows[theirs.rows.length - theirs.greedy.length - 1 + i]!;
    if (ours.greedy[i] === token) sameTokens++;
    else {
      sameFromStart = Math.min(sameFromStart, i);
      worstTieGap = Math.max(worstTieGap ?? 0, row[token]! - row[ours.greedy[i]!]!);
    }
  });
  const numTokens = theirs.greedy.length;
  return { error: Math.sqrt(differences / squares), worstRow, numTokens, sameTokens, sameFromStart, worstTieGap };
}

/** Several files as one: the root mean square of their errors, and the worst of the others. */
export function combine(comparisons: readonly Comparison[]): Comparison {
  const gaps = comparisons.flatMap(({ worstTieGap }) => worstTieGap ?? []);
  const total = (of: (comparison: Comparison) => number) => comparisons.reduce((sum, one) => sum + of(one), 0);
  return {
    error: Math.sqrt(total(({ error }) => error ** 2) / comparisons.length),
    worstRow: Math.max(...comparisons.map(({ worstRow }) => worstRow)),
    numTokens: total(({ numTokens }) => numTokens),
    sameTokens: total(({ sameTokens }) => sameTokens),
    sameFromStart: Math.min(...comparisons.map(({ sameFromStart }) => sameFromStart)),
    worstTieGap: gaps.length === 0 ? null : Math.max(...gaps),
  };
}

/** The relative error of each position. */
export function positionErrors(trace: Trace, truth: Trace): number[] {
  return truth.rows.map((row, r) => {
    const [difference, square] = rowDifference(trace.rows[r]!, row);
    return Math.sqrt(difference / square);
  });
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}

/** Sums of squares: of the differences, and of the expected values. */
function rowDifference(row: Float32Array, expected: Float32Array): [difference: number, square: number] {
  let [difference, square] = [0, 0];
  expected.forEach((value, i) => {
    difference += (value - row[i]!) ** 2;
    square += value ** 2;
  });
  return [difference, square];
}
