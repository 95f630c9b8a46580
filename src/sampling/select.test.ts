import { expect, test } from 'vitest';
import { findMassCut, selectTopK, sortByRank } from './select.ts';

test('top k: the worst of the top is at 0, lower positions win ties', () => {
  const keys = Float32Array.of(1, 3, 3, 2, 3, 0);
  const heap = new Int32Array(6);
  selectTopK(keys, 6, 2, heap);
  expect([...sortByRank(keys, heap.slice(0, 2))]).toEqual([1, 2]);
  expect(heap[0]).toBe(2);
  selectTopK(keys, 6, 6, heap);
  expect([...sortByRank(keys, heap.slice())]).toEqual([1, 2, 4, 3, 0, 5]);
  expect(heap[0]).toBe(5);
});

test('mass cut: reaching the target exactly is enough', () => {
  const equal = Float64Array.of(1, 1, 1, 1);
  expect(findMassCut(equal, equal, 4, 2, new Int32Array(4))).toBe(1);
  expect(findMassCut(equal, equal, 4, 0, new Int32Array(4))).toBe(0);
  expect(findMassCut(equal, equal, 4, 4, new Int32Array(4))).toBe(3);
  expect(findMassCut(equal, equal, 4, 4.5, new Int32Array(4))).toBe(-1);
});

test('mass cut: cuts a long, heavy tail where a full sort would', () => {
  const numTail = 1_000;
  const keys = new Float64Array(numTail + 1).fill(-40);
  const weights = new Float64Array(numTail + 1).fill(1);
  keys[500] = 0;
  // The best one, then the tail by position: 0 … 499, 501 …
  expect(findMassCut(keys, weights, numTail + 1, 3, new Int32Array(numTail + 1))).toBe(1);
  expect(findMassCut(keys, weights, numTail + 1, 600, new Int32Array(numTail + 1))).toBe(599);
});
