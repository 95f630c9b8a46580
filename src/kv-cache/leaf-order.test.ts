import { expect, test } from 'vitest';
import { createLeafHeap, type Rank, valueByForks } from './leaf-order.ts';

test("[RT9] a page's value by forks is its tokens times the logarithm of its forks, divided by its age", () => {
  const value = (numTokens: number, numForks: number, lastUse: number): number =>
    valueByForks({ numForks, lastUse }, numTokens, 10);
  expect(value(16, 0, 10)).toBe(16);
  expect(value(5, 0, 10)).toBe(5);
  expect(value(16, 0, 7)).toBe(4);
  expect(value(16, 2, 7)).toBe(8);
  expect(value(16, 14, 7)).toBe(16);
});

test('[RT9] a heap of leaves gives ordinary pages before sessions, then the lowest value, then the oldest', () => {
  const heap = createLeafHeap<Rank>();
  expect(heap.pop()).toBeUndefined();
  const ranks = Array.from({ length: 40 }, (_, i) => ({
    isSession: i % 3 === 0,
    value: (i * 7) % 11,
    lastUse: (i * 13) % 40,
  }));
  const rankOf = ({ isSession, value, lastUse }: Rank): number => (isSession ? 10_000 : 0) + value * 100 + lastUse;
  for (const numPushed of [1, 2, 3, 40]) {
    for (const rank of ranks.slice(0, numPushed)) heap.push(rank);
    const popped: Rank[] = [];
    for (let rank = heap.pop(); rank !== undefined; rank = heap.pop()) popped.push(rank);
    expect(popped.map(rankOf)).toEqual(
      ranks
        .slice(0, numPushed)
        .map(rankOf)
        .toSorted((a, b) => a - b),
    );
  }
});
