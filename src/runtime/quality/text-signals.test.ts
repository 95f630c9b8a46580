import { expect, test } from 'vitest';
import { textSignals } from './text-signals.ts';

const SENTENCE = 'The harbour master keeps a log of every ship that enters the bay and of its cargo.';

test('[QE3] a text without repeated phrases has full marks', () => {
  expect(textSignals(SENTENCE).repetition).toBe(1);
  expect(textSignals(SENTENCE).diversity).toBeGreaterThan(0.8);
});

test('[QE3] a loop is found wherever it begins, and however long its phrase is', () => {
  for (const phrase of ['no ', 'I do not know. ', 'the ship of the bay of the ship enters every day and ']) {
    expect(textSignals(phrase.repeat(8)).repetition, phrase).toBeLessThan(0.2);
    expect(textSignals(`${SENTENCE} ${phrase.repeat(12)}`).repetition, phrase).toBeLessThan(0.65);
  }
});

test('[QE3] emphasis is no loop, and neither is an empty text', () => {
  expect(textSignals('No, no, that is not what I meant.').repetition).toBe(1);
  expect(textSignals('Yes.').repetition).toBe(1);
  expect(textSignals('')).toEqual({ numWords: 0, repetition: 1, diversity: 0 });
});

test('diversity does not fall with the length of a text', () => {
  const long = Array.from(
    { length: 40 },
    (_, i) => `Ship ${i} of captain ${i * 7} brings ${i * 13} boxes of tea to port ${i * 3}.`,
  );
  expect(textSignals(long.join(' ')).diversity).toBeGreaterThan(
    textSignals(long.slice(0, 5).join(' ')).diversity - 0.1,
  );
});

test('[QE3] scripts without spaces are read by character', () => {
  expect(textSignals('你好'.repeat(30)).repetition).toBeLessThan(0.2);
  expect(textSignals('港务长记录每艘进入海湾的船只的名称和货物。').repetition).toBe(1);
});
