import { expect, test } from 'vitest';
import { valueByForks } from './leaf-order.ts';

test("[RT9] a page's value by forks is its tokens times the logarithm of its forks, divided by its age", () => {
  const value = (numTokens: number, numForks: number, lastUse: number): number =>
    valueByForks({ numForks, lastUse }, numTokens, 10);
  expect(value(16, 0, 10)).toBe(16);
  expect(value(5, 0, 10)).toBe(5);
  expect(value(16, 0, 7)).toBe(4);
  expect(value(16, 2, 7)).toBe(8);
  expect(value(16, 14, 7)).toBe(16);
});
