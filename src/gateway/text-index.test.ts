import { expect, test } from 'vitest';
import { createTextIndex, placesOf } from './text-index.ts';
import { TEXT_BLOCK_BYTES } from './text-chain.ts';

/** A text whose block i has the name of all before it, as in a chain of hashes. */
const chain = (name: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${name}${i}`);
const learn = (index: ReturnType<typeof createTextIndex>, name: string, count: number): void => {
  const hashes = chain(`${name} token `, count * 2);
  index.learn(chain(name, count), count * TEXT_BLOCK_BYTES, { numBlocks: hashes.length, stride: 1, hashes });
};
const longest = (index: ReturnType<typeof createTextIndex>, name: string, count: number): number =>
  index.find(chain(name, count)).at(-1)?.numBlocks ?? 0;

test('[FA9] short texts have all places, long ones at most 34, and always the last two', () => {
  expect(placesOf(0)).toEqual([]);
  expect(placesOf(1)).toEqual([0]);
  expect(placesOf(31)).toEqual(Array.from({ length: 31 }, (_, i) => i));
  expect(placesOf(33)).toEqual([...Array.from({ length: 15 }, (_, i) => 2 * i + 1), 31, 32]);
  for (let count = 16; count <= 2048; count++) {
    const places = placesOf(count);
    expect(places.length).toBeLessThanOrEqual(34);
    expect(places.slice(-2)).toEqual([count - 2, count - 1]);
    expect(places).toEqual([...new Set(places)].sort((a, b) => a - b));
    const gaps = places.map((place, i) => place - (places[i - 1] ?? -1));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(count / 16);
  }
});

test('[FA9] a conversation that goes on is known to the end of its last turn, a shared beginning to 1/16', () => {
  const index = createTextIndex();
  learn(index, 'a', 203);
  expect(longest(index, 'a', 500)).toBe(2 * 203);
  expect(longest(index, 'a', 202)).toBe(2 * 202); // the last block of a turn may end otherwise
  for (const shared of [16, 50, 101, 199]) {
    const blocks = longest(index, 'a', shared);
    expect(blocks).toBeLessThanOrEqual(2 * shared);
    expect(blocks).toBeGreaterThan(2 * (shared - 203 / 16));
  }
});

test('[FA8] the latest texts are remembered, and known without their beginnings', () => {
  const index = createTextIndex(47);
  learn(index, 'a', 200);
  learn(index, 'b', 200);
  learn(index, 'c', 40);
  expect(index.size).toBe(47);
  expect([longest(index, 'a', 200), longest(index, 'b', 200), longest(index, 'c', 40)]).toEqual([0, 400, 80]);
});
