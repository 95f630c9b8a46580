import { expect, test } from 'vitest';
import { estimateFrequencies } from './token-frequencies.ts';

test('[EM6] words fall in order of their ids, and add up to 1', () => {
  const frequencies = estimateFrequencies(
    Array.from({ length: 1000 }, (_, i) => `word${i}`),
    1000,
  );
  for (let id = 1; id < 1000; id++) expect(frequencies[id]!).toBeLessThan(frequencies[id - 1]!);
  expect(frequencies.reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 5);
});

test('[EM6] single characters, bytes and unused pieces are as frequent as the first word, and take no rank from others', () => {
  const pieces = ['<0x0A>', '[unused7]', '\u2581the', '\u2581card', '##s', '\u2581a', '.', '\u0120', '\u{1f600}', 'to'];
  const found = [...estimateFrequencies(pieces, pieces.length)];
  const [first, second, third] = [2.7, 3.7, 4.7].map((rank) => 1 / rank / Math.max(1, 1 / 2.7 + 1 / 3.7 + 1 / 4.7));
  const expected = [first, first, first, second, first, first, first, first, first, third].map((value) =>
    Math.fround(value!),
  );
  expect(found).toEqual(expected);
});

test('[EM6] a padded table has a frequency for each row, a short one no more than it has rows', () => {
  expect(estimateFrequencies(['the', 'card'], 5).length).toBe(5);
  expect([...estimateFrequencies(['the', 'card'], 1)]).toEqual([Math.fround(1 / 2.7)]);
});
