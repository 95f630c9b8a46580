import { expect, test } from 'vitest';
import { valueOfPage } from './leaf-order.ts';

test("[RT9] a page's value is its tokens times the logarithm of its uses, divided by its age", () => {
  const page = { tier: 'float' as const, index: 0, numRefs: 1 };
  const value = (numTokens: number, numUses: number, lastUse: number): number =>
    valueOfPage({ page, numUses, lastUse, isSession: false }, numTokens, 10);
  expect(value(16, 0, 10)).toBe(16);
  expect(value(5, 0, 10)).toBe(5);
  expect(value(16, 0, 7)).toBe(4);
  expect(value(16, 2, 7)).toBe(8);
  expect(value(16, 14, 7)).toBe(16);
});
