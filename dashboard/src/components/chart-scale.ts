/** Around a single point of time: else the axis would go on for years. */
const ALONE_SECONDS = 43_200;

/** Distances of lines of a chart that counts: there is nothing between 1 and 2. */
export const COUNT_STEPS: readonly number[] = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();

/** From where to where an x axis goes; null: nothing is drawn yet. */
export function xRange(min: number | null, max: number | null, isTime: boolean): [number | null, number | null] {
  if (min === null || max === null || min !== max) return [min, max];
  const around = isTime ? ALONE_SECONDS : 1;
  return [min - around, max + around];
}
