import { expect, test } from 'vitest';
import { estimateQuality } from './estimate-quality.ts';

const score = (text: string, meanLogprob: number | null = -0.3, isValid: boolean | null = null) =>
  estimateQuality({ text, meanLogprob, isValid }).quality;
const GOOD = 'The capital of Austria is Vienna, a city on the Danube.';

test('[QE3] an empty answer is worth nothing, and a loop or a wrong format little', () => {
  expect(score('', 0)).toBe(0);
  expect(score('  \n', 0)).toBe(0);
  // A loop is very likely, token by token.
  expect(score('I am sorry. '.repeat(20), -0.01)).toBeLessThan(0.05);
  expect(score(GOOD, -0.01, false)).toBeLessThanOrEqual(0.05);
  expect(score(GOOD, -0.01, true)).toBeGreaterThan(0.4);
});

test('likelier answers have a higher estimate', () => {
  expect(score(GOOD, -0.1)).toBeGreaterThan(score(GOOD, -1));
  expect(score(GOOD, -1)).toBeGreaterThan(score(GOOD, -3));
});

test('[QE1] parts that are not known are missing and count as average', () => {
  const { parts, quality } = estimateQuality({ text: GOOD, meanLogprob: null, isValid: null });
  expect(Object.keys(parts).sort()).toEqual(['diversity', 'repetition']);
  expect(quality).toBeGreaterThan(score(GOOD, -4));
  expect(quality).toBeLessThan(score(GOOD, 0));
});

test('parts from elsewhere are shown, within 0 and 1', () => {
  const others = { coherence: 1.0000001, uniqueness: 0.25 };
  expect(estimateQuality({ text: GOOD, meanLogprob: -1, isValid: true, others }).parts).toMatchObject({
    schema: 1,
    likelihood: 0.368,
    coherence: 1,
    uniqueness: 0.25,
  });
});
