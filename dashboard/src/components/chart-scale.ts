/** Margin on each side of a single point on a time axis, which would otherwise span years. */
const SINGLE_POINT_MARGIN_SECONDS = 43_200;

/** Grid line distances for integer values, so that no tick lies between 1 and 2. */
export const COUNT_STEPS: readonly number[] = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();

type Range = [number | null, number | null];

/** Returns the range of the x axis: the requested range, or a margin around a single point. */
export function xRange(x: ArrayLike<number>, requestedRange: Range, isTime: boolean): Range {
  if (x.length !== 1) return requestedRange;
  const margin = isTime ? SINGLE_POINT_MARGIN_SECONDS : 1;
  return [x[0]! - margin, x[0]! + margin];
}
