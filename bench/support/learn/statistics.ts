/** A mean and the half width of its 95 % confidence interval. */
export interface Interval {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

/** Two-sided 97.5 % points of Student's t by degrees of freedom; 1.96 beyond. */
const T_POINTS: readonly [number, number][] = [
  [1, 12.71],
  [2, 4.3],
  [3, 3.18],
  [4, 2.78],
  [5, 2.57],
  [9, 2.26],
  [19, 2.09],
  [29, 2.05],
  [59, 2],
  [119, 1.98],
];

export function interval(values: readonly number[]): Interval {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, count - 1);
  // The row at or below the degrees of freedom: never too narrow.
  const t = T_POINTS.findLast(([degrees]) => degrees <= count - 1)?.[1] ?? 12.71;
  const half = (count - 1 >= 240 ? 1.96 : t) * Math.sqrt(variance / count);
  return { mean, low: mean - half, high: mean + half };
}

/** Of the differences after − before, pair by pair. */
export function pairedChange(before: readonly number[], after: readonly number[]): Interval {
  return interval(after.map((value, i) => value - before[i]!));
}

export function show({ mean, low, high }: Interval): string {
  return `${mean.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]`;
}
