import { expect, test } from 'vitest';
import { COUNT_STEPS, xRange } from './chart-scale.ts';

test('centres a single point within one day, or between its neighbouring integers', () => {
  expect(xRange([1_000_000], [1_000_000, 87_400_000], true)).toEqual([956_800, 1_043_200]);
  expect(xRange([3], [3, 3], false)).toEqual([2, 4]);
  expect(xRange([3, 5, 7], [4, 6], false)).toEqual([4, 6]);
  expect(xRange([], [null, null], true)).toEqual([null, null]);
});

test('uses integer steps for counts', () => {
  expect(COUNT_STEPS.slice(0, 5)).toEqual([1, 2, 5, 10, 20]);
  expect(COUNT_STEPS.every(Number.isInteger)).toBe(true);
});
