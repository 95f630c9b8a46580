/** Change over the same examples before and after. */
export interface PairedChange {
  readonly count: number;
  /** Mean of after − before. */
  readonly mean: number;
  /** 95 % interval of the mean, by Student's t. */
  readonly low: number;
  readonly high: number;
}

/** 97.5 % points of Student's t by degrees of freedom; in between the lower one applies, which is wider. */
const T_POINTS: readonly (readonly [number, number])[] = [
  [1, 12.706],
  [2, 4.303],
  [3, 3.182],
  [4, 2.776],
  [5, 2.571],
  [6, 2.447],
  [7, 2.365],
  [8, 2.306],
  [9, 2.262],
  [10, 2.228],
  [12, 2.179],
  [15, 2.131],
  [20, 2.086],
  [30, 2.042],
  [60, 2.0],
  [120, 1.98],
  [1000, 1.962],
];

/** The 97.5 % point of Student's t. */
export const studentPoint = (degrees: number): number => T_POINTS.findLast(([df]) => df <= degrees)![1];

/** The interval of a single pair is infinite. */
export function pairedChange(before: readonly number[], after: readonly number[]): PairedChange {
  const changes = after.map((value, i) => value - before[i]!);
  const count = changes.length;
  if (count === 0) return { count, mean: 0, low: -Infinity, high: Infinity };
  const mean = changes.reduce((sum, value) => sum + value, 0) / count;
  if (count === 1) return { count, mean, low: -Infinity, high: Infinity };
  const variance = changes.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1);
  const half = studentPoint(count - 1) * Math.sqrt(variance / count);
  return { count, mean, low: mean - half, high: mean + half };
}
