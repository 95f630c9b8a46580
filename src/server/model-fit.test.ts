import { expect, test } from 'vitest';
import { fitOf } from './model-fit.ts';

test('distinguishes models that fit now, after unloading idle ones, and not at all', () => {
  const held = [
    { heldBytes: 40, numUsers: 1 },
    { heldBytes: 30, numUsers: 0 },
  ];
  const machine = { budgetBytes: 100, freeBytes: 1000 };
  expect(fitOf(30, held, machine)).toBe('yes');
  expect(fitOf(31, held, machine)).toBe('after_unload');
  expect(fitOf(60, held, machine)).toBe('after_unload');
  expect(fitOf(61, held, machine)).toBe('no');
  expect(fitOf(30, held, { budgetBytes: 100, freeBytes: 29 })).toBe('after_unload');
  expect(fitOf(60, held, { budgetBytes: null, freeBytes: 29 })).toBe('no');
  expect(fitOf(30, held, { budgetBytes: 100, freeBytes: null })).toBe('yes');
  expect(fitOf(30, held, { budgetBytes: null, freeBytes: null })).toBe('unknown');
});
