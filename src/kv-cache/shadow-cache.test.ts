import { expect, test } from 'vitest';
import { valueByRecency } from './leaf-order.ts';
import { createShadowCache } from './shadow-cache.ts';

const createRecent = () => createShadowCache(4, valueByRecency);

test('finds the pages of a prompt up to the first unknown one', () => {
  const cache = createRecent();
  expect([cache.lookUp([], 9), cache.lookUp([1, 2, 3], 9), cache.lookUp([1, 2, 3], 9)]).toEqual([0, 0, 3]);
  expect([cache.lookUp([1, 2, 4, 3], 9), cache.lookUp([1, 2, 4], 9), cache.lookUp([7, 2], 9)]).toEqual([2, 3, 0]);
  cache.clear();
  expect(cache.lookUp([1], 9)).toBe(0);
});

test('a full cache keeps all pages; one more evicts the oldest down to 95 %', () => {
  const cache = createRecent();
  for (let id = 1; id <= 20; id++) cache.lookUp([id], 20);
  expect(cache.lookUp([1], 20)).toBe(1);
  cache.lookUp([21], 20); // 2 and 3 leave
  expect(cache.lookUp([4], 20)).toBe(1);
  expect(cache.lookUp([1], 20)).toBe(1);
  expect(cache.lookUp([2], 20)).toBe(0);
  expect(cache.lookUp([4], 20)).toBe(1);
});

test('evicts a prompt from its end, and never the prompt of this call', () => {
  const cache = createRecent();
  cache.lookUp([1, 2, 3, 4], 10);
  for (let id = 11; id <= 17; id++) cache.lookUp([id], 10); // 11 pages, 9 are kept
  expect(cache.lookUp([1, 2, 3, 4], Infinity)).toBe(2);
  const small = createRecent();
  expect([small.lookUp([1, 2, 3], 1), small.lookUp([1, 2, 3], 1)]).toEqual([0, 3]);
  expect([small.lookUp([9], 1), small.lookUp([9], 1), small.lookUp([1], 1)]).toEqual([0, 1, 0]);
});

test('a page before two continuations counts as forked; a prompt that grows or comes again does not', () => {
  const forks: number[] = [];
  const sessions = createShadowCache(4, ({ numForks, lastUse }, numTokens) => {
    expect(numTokens).toBe(4);
    forks.push(numForks);
    return lastUse;
  });
  sessions.lookUp([1, 2], Infinity);
  sessions.lookUp([1, 2, 4], Infinity); // grows
  sessions.lookUp([1, 3], Infinity); // forks behind 1
  sessions.lookUp([1, 2, 5], Infinity); // and behind 2
  sessions.lookUp([1, 2], Infinity);
  sessions.lookUp([1, 2, 5], Infinity);
  expect(forks).toEqual([]);
  sessions.lookUp([9], 0);
  expect(forks.toSorted()).toEqual([0, 0, 0, 1, 2]);
});

test('a call counts one use and one page for each that is computed, as in the tree', () => {
  const seen: [lastUse: number, now: number][] = [];
  const cache = createShadowCache(4, ({ lastUse }, _, now) => {
    seen.push([lastUse, now]);
    return lastUse;
  });
  cache.lookUp([1, 2, 3], Infinity); // 1 + 3
  cache.lookUp([1, 2], Infinity); // 1 more for 1 and 2
  cache.lookUp([9], 0); // 2 more
  expect(seen).toEqual([
    [4, 7],
    [5, 7],
    [5, 7],
  ]);
});
