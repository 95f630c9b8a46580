import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { didYouMean, editDistance, nearest } from './nearest.ts';

test('computes the edit distance', () => {
  expect(editDistance('list', 'lsit')).toBe(1); // transposition
  expect(editDistance('kitten', 'sitting')).toBe(3);
  expect(editDistance('', 'abc')).toBe(3);
  fc.assert(
    fc.property(fc.string(), fc.string(), (a, b) => {
      expect(editDistance(a, b)).toBe(editDistance(b, a));
      expect(editDistance(a, a)).toBe(0);
    }),
  );
});

test('returns at most three similar candidates, nearest first', () => {
  expect(nearest('lst', ['list', 'rm', 'last', 'lost', 'lust'])).toEqual(['last', 'list', 'lost']);
  expect(nearest('Temperatur', ['temperature', 'topK'])).toEqual(['temperature']);
  expect(nearest('qwen', ['Qwen/Qwen2.5-0.5B-Instruct-GGUF:q4_k_m', 'other/model'])).toEqual([
    'Qwen/Qwen2.5-0.5B-Instruct-GGUF:q4_k_m',
  ]);
  expect(nearest('zzzz', ['list'])).toEqual([]);
  expect(nearest('', ['list'])).toEqual([]);
  expect(nearest('x'.repeat(1 << 20), ['list'])).toEqual([]);
});

test('formats suggestions as a question', () => {
  expect(didYouMean('lst', ['list'])).toBe(' (did you mean list?)');
  expect(didYouMean('zzzz', ['list'])).toBe('');
});
