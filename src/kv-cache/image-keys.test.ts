import { expect, test } from 'vitest';
import { createImageKeys } from './image-keys.ts';

const hashOf = (seed: number): string => seed.toString(16).padStart(64, '0');

test('[KC19] images have different negative keys, and the same image keeps its key', () => {
  const images = createImageKeys();
  const keys = Array.from({ length: 100 }, (_, i) => images.keyOf(hashOf(i)));
  expect(new Set(keys).size).toBe(100);
  expect(keys.every((key) => key < 0)).toBe(true);
  expect(Array.from({ length: 100 }, (_, i) => images.keyOf(hashOf(i)))).toEqual(keys);
});

test('[KC19] names that outlive the process contain the whole hash', () => {
  const [one, other] = [createImageKeys(), createImageKeys()];
  other.keyOf(hashOf(1));
  const spelled = (images: ReturnType<typeof createImageKeys>, hash: string) =>
    images.spell([5, images.keyOf(hash), images.keyOf(hash), 6]);
  const hash = `${'0123456789abcdef'.repeat(3)}fedcba9876543210`;
  expect(spelled(one, hash)).toEqual(spelled(other, hash));
  // Every digit counts.
  for (let i = 0; i < 64; i++) {
    const changed = hash.slice(0, i) + (hash[i] === '0' ? '1' : '0') + hash.slice(i + 1);
    expect(spelled(one, changed), `digit ${i}`).not.toEqual(spelled(one, hash));
  }
  expect(one.spell([5, 6])).toEqual([5, 6]);
});

test('[KC19] a forgotten image gets a new key, and its old one has no name', () => {
  const images = createImageKeys(2);
  const first = images.keyOf(hashOf(1));
  images.keyOf(hashOf(2));
  images.keyOf(hashOf(1)); // used again: the second is older
  const second = images.keyOf(hashOf(2));
  images.keyOf(hashOf(3));
  expect(images.spell([first])).toBeNull();
  expect(images.spell([second])).not.toBeNull();
  const again = images.keyOf(hashOf(1));
  expect(again).not.toBe(first);
});
