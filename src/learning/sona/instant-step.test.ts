// Single steps of loop A, without anything around them.
import { expect, test } from 'vitest';
import { createAdaptedView } from '../micro-lora/adapted-view.ts';
import type { MicroLoraState, TokenSample } from '../micro-lora/types.ts';
import { createInstantLearner } from './instant-step.ts';

const CONFIG = { hiddenDim: 4, vocabSize: 6, rank: 4, alpha: 4 };
const sample = (label: number, scale = 1): TokenSample => ({
  hidden: Float32Array.of(scale, -scale, 0.5 * scale, 2 * scale),
  label,
  ids: [0, 1, 2, 3, 4, 5],
  logits: [0, 0.1, 0.2, 0.3, 0.4, 0.5],
});
const jobOf = (
  samples: TokenSample[],
  changes: { key?: string; quality?: number; learningRate?: number; isPraise?: boolean } = {},
) => ({
  // prettier-ignore
  key: 'one',
  config: CONFIG,
  state: null,
  samples,
  quality: 1,
  isPraise: false,
  question: `question ${samples[0]!.label}`,
  answer: `answer ${samples[0]!.label}`,
  probes: [],
  praised: [],
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

/** A token that the model says by itself, on a hidden state of its own or the shared one. */
const spoken = (label: number, hidden = Float32Array.of(1, -1, 0.5, 2)): TokenSample => ({
  hidden,
  label,
  ids: [label, (label + 1) % 6, (label + 2) % 6],
  logits: [2, 1, 0],
});

test('takes no step when the model already gives the answer (LA4)', () => {
  const learner = createLearner();
  const known = learner.step(jobOf([spoken(1), spoken(2)]));
  expect(known).toMatchObject({ result: 'already-known', isApplied: false, state: null });
  expect(known.reason).toBe('the model already gives this answer, each of 2 tokens ahead by 1.00 or more');
  expect(learner.step(jobOf([sample(1)])).result).toBe('learned');
  let last = learner.step(jobOf([sample(1)]));
  for (let i = 0; i < 50 && last.result === 'learned'; i++) last = learner.step(jobOf([sample(1)]));
  expect(last.result).toBe('already-known');
});

test('a step that would change an unrelated answer is shortened or refused (LA5)', () => {
  const probes = [spoken(3)];
  // Towards 4 where the unrelated text says 3.
  const [free, judged] = [createLearner(), createLearner()];
  const job = jobOf([sample(4)], { learningRate: 1 });
  expect(free.step(job).result).toBe('learned');
  const refused = judged.step({ ...job, probes });
  expect(refused).toMatchObject({ result: 'refused', isApplied: false, state: null });
  expect(refused.reason).toBe('refused: unrelated answers would change at 1 of 1 tokens');
  // The same step elsewhere in the hidden space leaves it alone.
  const orthogonal = { ...sample(4), hidden: Float32Array.of(1, 1, 0, 0) };
  expect(judged.step({ ...jobOf([orthogonal], { learningRate: 0.02 }), probes }).result).toBe('learned');
});

test('refuses a step that makes unrelated answers diverge (LA5)', () => {
  const learner = createLearner();
  // The unrelated text says the same word, and would say it with hardly any doubt.
  const probes = [{ ...spoken(3), logits: [3, 1, 0] }];
  const refused = learner.step({ ...jobOf([sample(3)], { learningRate: 1 }), probes });
  expect(refused).toMatchObject({ result: 'refused', state: null });
  expect(refused.reason).toMatch(
    /^refused: unrelated answers would diverge by \d\.\d{4} nats per token, more than 0\.02$/,
  );
});

test('is not judged by copies of the same lesson (LA6)', () => {
  const lesson = { question: 'What is the capital of Australia?', answer: 'Canberra.' };
  const copy = { question: 'what is the capital of australia', answer: 'Canberra' };
  const other = { question: 'Where do wombats live?', answer: 'In burrows.' };
  const strong = (text: typeof lesson, label: number) =>
    ({ ...jobOf([sample(label, 50)], { learningRate: 1 }), ...text }) as const;
  for (const [earlier, result] of [
    [copy, 'learned'],
    [other, 'refused'],
  ] as const) {
    const learner = createLearner();
    for (let i = 0; i < 4; i++) learner.step({ ...jobOf([sample(1)]), ...earlier });
    expect(learner.step(strong(lesson, 4)).result, earlier.question).toBe(result);
  }
});

test('no step changes a praised answer (LA7)', () => {
  const learner = createLearner();
  // Ahead by so little that a quarter of the step would be too much.
  const praised = [{ question: 'Who are you?', samples: [{ ...spoken(3), logits: [2, 1.8, 0] }] }];
  const refused = learner.step({ ...jobOf([sample(4)], { learningRate: 1 }), praised });
  expect(refused.reason).toBe('refused: the praised answer to "Who are you?" would change');
  // Words of a sampled answer that the model would not say by itself hold nothing back.
  const drawn = [{ question: 'Who are you?', samples: [{ ...spoken(3), label: 5, labelLogit: -2 }] }];
  expect(learner.step({ ...jobOf([sample(4)], { learningRate: 1 }), praised: drawn }).result).toBe('learned');
});

test('praise takes no step where rounding decides between two tokens (LA7)', () => {
  // The model said 3, and another batch computes it as a close second.
  const close = { ...spoken(3), ids: [4, 3, 5], logits: [2, 1.95, 0] };
  expect(createLearner().step(jobOf([close], { isPraise: true }))).toMatchObject({
    result: 'already-known',
    reason: 'the model already gives this answer, each of 1 tokens likeliest but for rounding',
    state: null,
  });
  expect(createLearner().step(jobOf([close])).result).toBe('learned'); // a correction does
  // Sampled at a temperature: the model would not give it again by itself.
  const drawn = { ...close, logits: [2, 1.5, 0] };
  expect(createLearner().step(jobOf([drawn], { isPraise: true })).result).toBe('learned');
});

test('no step tips a close decision of a praised answer (LA7)', () => {
  const close = { ...spoken(3, Float32Array.of(1, 1, 0, 0)), logits: [2, 1.98, 0] }; // 4 is the close second
  const praised = [{ question: 'Who are you?', samples: [close] }];
  const marginAfter = (state: MicroLoraState) => createAdaptedView(CONFIG, state.parameters).token(close).margin;
  const step = jobOf([{ ...sample(4), hidden: Float32Array.of(0, 1, 1, 0) }], { learningRate: 0.05 });
  expect(marginAfter(createLearner().step(step).state!)).toBeLessThan(0);
  const { result, state } = createLearner().step({ ...step, praised });
  expect(result).toBe('learned');
  expect(marginAfter(state!)).toBeCloseTo(0.02, 4);
});
