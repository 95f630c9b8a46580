import { expect, test } from 'vitest';
import { inverseFrequency, maxTermScore, termScore } from './bm25.ts';

test.each([
  [10, 1, Math.log(22 / 3)], // 1 + 9.5 / 1.5
  [10, 10, Math.log(22 / 21)], // 1 + 0.5 / 10.5
  [0, 0, Math.log(2)],
])('of %d texts, %d have the term: it weighs %d', (numTexts, numTextsWithTerm, weight) => {
  expect(inverseFrequency(numTexts, numTextsWithTerm)).toBeCloseTo(weight, 12);
});

// idf · f · (k1 + 1) / (f + k1 · (1 - b + b · length)) with k1 = 1.2 and b = 0.75
test.each([
  [1, 1, 1, 1],
  [2, 1, 1, 2],
  [1, 3, 1, 6.6 / 4.2],
  [1, 1, 2, 2.2 / 3.1],
  [1, 2, 0, 4.4 / 2.3],
  [1, 0, 1, 0],
])(
  'a term of weight %d that occurs %d times in a text of %d average lengths adds %d',
  (idf, frequency, length, score) => {
    expect(termScore(idf, frequency, length)).toBeCloseTo(score, 12);
  },
);

test('the most that a term adds is what it adds if it occurs again and again', () => {
  expect(maxTermScore(1)).toBeCloseTo(2.2, 12);
  expect(termScore(3, 1e9, 1)).toBeCloseTo(maxTermScore(3), 6);
});
