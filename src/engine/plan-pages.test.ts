import { expect, test } from 'vitest';
import type { DecoderShape } from '../models/types.ts';
import { type PageWishes, planPages } from './plan-pages.ts';

/** 22 layers of 4 heads of 64 values: 22 × 16 384 bytes a page of 16 tokens in f16. */
const shape = { isCausal: true, numKvLayers: 22, numKvHeads: 4, headDim: 64 } as DecoderShape;
const PAGE = 22 * 16_384;

const wishes = (some: Partial<PageWishes>): PageWishes => ({
  kvCacheTokens: null,
  memoryBudgetBytes: null,
  maxContext: 2048,
  isContextGiven: false,
  maxSequences: 8,
  maxBatchTokens: 512,
  kvPrecision: 'f16',
  ...some,
});

test('a budget is filled with pages, and never exceeded', () => {
  expect(planPages(wishes({ memoryBudgetBytes: 200 * PAGE - 1 }), shape, null)).toEqual({
    numPages: 199,
    leastPages: 199,
  });
  const both = wishes({ memoryBudgetBytes: 200 * PAGE, kvCacheTokens: 2048 });
  expect(planPages(both, shape, null).numPages).toBe(128);
});

test('without wishes: half a gibibyte, though at least a context, and less where memory is short', () => {
  expect(planPages(wishes({}), shape, null)).toEqual({ numPages: Math.floor(2 ** 29 / PAGE), leastPages: 256 });
  expect(planPages(wishes({ maxContext: 2 ** 16 }), shape, null)).toEqual({ numPages: 4096, leastPages: 4096 });
});

test('without wishes: no more than four full batches can use, though at least 4,096 tokens', () => {
  const small = { isCausal: true, numKvLayers: 1, numKvHeads: 1, headDim: 8 } as DecoderShape;
  expect(planPages(wishes({ maxContext: 256 }), small, null)).toEqual({ numPages: 512, leastPages: 128 });
  expect(planPages(wishes({ maxContext: 100 }), small, null)).toEqual({ numPages: 256, leastPages: 50 });
  expect(planPages(wishes({ maxContext: 2048 }), small, null)).toEqual({ numPages: 4096, leastPages: 256 });
});

test('an encoder has no KV cache: pages for one step, unless more are requested', () => {
  const encoder = { ...shape, isCausal: false };
  expect(planPages(wishes({}), encoder, null)).toEqual({ numPages: 32 + 16, leastPages: 32 + 16 });
  expect(planPages(wishes({ maxBatchTokens: 8192, maxSequences: 1 }), encoder, null).numPages).toBe(512 + 2);
  expect(planPages(wishes({ kvCacheTokens: 64 }), encoder, null).numPages).toBe(4);
});

test('a budget smaller than one sequence is refused with both numbers; packed pages need less', () => {
  const plan = (memoryBudgetBytes: number, packed: 'q8' | null, isContextGiven = true) =>
    planPages(wishes({ memoryBudgetBytes, isContextGiven }), shape, packed);
  expect(plan(128 * PAGE, null).numPages).toBe(128);
  expect(() => plan(128 * PAGE - 1, null)).toThrow(
    expect.objectContaining({
      code: 'out_of_memory',
      data: { budgetBytes: 128 * PAGE - 1, neededBytes: 128 * PAGE, numTokens: 2048 },
    }),
  );
  expect(plan(100 * PAGE, 'q8').numPages).toBe(100);
  expect(plan(PAGE, null, false).numPages).toBe(1);
  expect(() => plan(PAGE - 1, 'q8', false)).toThrow(/budget of 360447 bytes is too small.*16 tokens takes 360448/);
});
