import { expect, test } from 'vitest';
import { isHeldOut } from '../../learning/sona/examples.ts';
import { makeRequestIds, shuffleCorrections, splitLessons } from './learning.ts';

const lessons = Array.from({ length: 10 }, (_, i) => ({ question: `q${i}`, correction: `c${i}`, paraphrases: [] as string[] })); // prettier-ignore

test('without paraphrases every fifth lesson is held out and never taught', () => {
  const { taught, heldOut } = splitLessons(lessons);
  expect(heldOut.map(({ question }) => question)).toEqual(['q4', 'q9']);
  expect(taught.map(({ question }) => question)).not.toContain('q4');
  const asked = splitLessons(lessons.map((one) => ({ ...one, paraphrases: [`${one.question}?`] })));
  expect(asked.taught).toHaveLength(10);
  expect(asked.heldOut[3]).toEqual({ question: 'q3?', correction: 'c3', group: 'q3' });
});

test('shuffled corrections leave none with its question', () => {
  for (let seed = 0; seed < 50; seed++) {
    const shuffled = shuffleCorrections(lessons, seed);
    expect(shuffled.map(({ question }) => question)).toEqual(lessons.map(({ question }) => question));
    expect(shuffled.filter(({ correction }, i) => correction === `c${i}`)).toEqual([]);
    expect(new Set(shuffled.map(({ correction }) => correction)).size).toBe(10);
  }
});

test('the background loop holds out every fifth lesson, for any seed', () => {
  for (let seed = 0; seed < 20; seed++) {
    const ids = makeRequestIds(20, seed);
    expect(ids.map(isHeldOut)).toEqual(ids.map((_, i) => i % 5 === 4));
    expect(ids).toEqual(makeRequestIds(20, seed));
    expect(new Set(ids).size).toBe(20);
  }
});
