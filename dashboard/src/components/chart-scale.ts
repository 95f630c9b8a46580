/** Around a single point of time: else the axis would go on for years. */
const ALONE_SECONDS = 43_200;

/** Distances of lines of a chart that counts: there is nothing between 1 and 2. */
export const COUNT_STEPS: readonly number[] = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();

type Range = [number | null, number | null];

/** From where to where the axis of these points goes: as asked for, which may be a part of them, unless there is only one. */
export function xRange(x: ArrayLike<number>, asked: Range, isTime: boolean): Range {
  if (x.length !== 1) return asked;
  const around = isTime ? ALONE_SECONDS : 1;
  return [x[0]! - around, x[0]! + around];
}
