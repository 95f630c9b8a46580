// Single steps of loop A, without anything around them.
import { expect, test } from 'vitest';
import type { TokenSample } from '../micro-lora/types.ts';
import { createInstantLearner } from './instant-step.ts';

const CONFIG = { hiddenDim: 4, vocabSize: 6 };
const sample = (label: number, scale = 1): TokenSample => ({
  hidden: Float32Array.of(scale, -scale, 0.5 * scale, 2 * scale),
  label,
  ids: [0, 1, 2, 3, 4, 5],
  logits: [0, 0.1, 0.2, 0.3, 0.4, 0.5],
});
const jobOf = (samples: TokenSample[], changes: { key?: string; quality?: number; learningRate?: number } = {}) => ({
  key: 'one',
  config: CONFIG,
  state: null,
  samples,
  quality: 1,
  learningRate: 0.05,
  ...changes,
});
const createLearner = (maxPupils?: number) => createInstantLearner(() => 0, maxPupils);

test('refuses a step that makes the loss NaN, also the first (LA2)', () => {
  const learner = createLearner();
  // The gradient is shortened, and so is B; what they meet again is not.
  expect(learner.step(jobOf([sample(1), sample(2, 1e30)]))).toMatchObject({
    isApplied: false,
    reason: 'refused: the loss would not be a number',
    lossAfter: null,
    state: null,
  });
});

test('a refused step leaves no trace (LA2)', () => {
  const [tried, spared] = [createLearner(), createLearner()];
  for (const learner of [tried, spared]) for (let i = 0; i < 4; i++) learner.step(jobOf([sample(1)]));
  // The same place, another word, with a step too long for what was learned there.
  const refused = tried.step(jobOf([sample(4, 50)], { learningRate: 1 }));
  expect(refused.reason).toContain('refused: earlier answers would lose');
  const [after, without] = [tried, spared].map((learner) => learner.step(jobOf([sample(1)])));
  expect(after!.state).toEqual(without!.state);
  expect(after!.lossBefore).toBe(without!.lossBefore);
});

test('evicts the least recently used adapter above the limit', () => {
  const learner = createLearner(2);
  const first = ['a', 'b', 'c'].map((key) => learner.step(jobOf([sample(1)], { key })));
  expect(learner.step(jobOf([sample(1)], { key: 'c' })).lossBefore).toBe(first[2]!.lossAfter);
  expect(learner.step(jobOf([sample(1)], { key: 'a' })).lossBefore).toBe(first[0]!.lossBefore);
});
