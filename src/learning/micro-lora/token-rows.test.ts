import { expect, test } from 'vitest';
import { createAdaptedView } from './adapted-view.ts';
import { createTokenRows, orthonormal } from './token-rows.ts';
import type { TokenSample } from './types.ts';

const SHAPE = { hiddenDim: 6, vocabSize: 8, rank: 3 };
const CONFIG = { ...SHAPE, alpha: 3 };

/** A context in which the model prefers token 0. */
const sampleOf = (label: number, ...hidden: number[]): TokenSample => ({
  hidden: Float32Array.from({ length: 6 }, (_, i) => hidden[i] ?? 0),
  label,
  ids: [0, 1, 2, 3, 4, 5, 6, 7],
  logits: [1, 0.5, 0.4, 0.3, 0.2, 0.1, 0, -0.1],
});

function learn(rows: ReturnType<typeof createTokenRows>, sample: TokenSample, quality = 1, numSteps = 30): void {
  for (let i = 0; i < numSteps; i++) {
    rows.adapt([sample], { quality });
    rows.applyUpdates(0.1);
  }
}
const marginOf = (rows: ReturnType<typeof createTokenRows>, sample: TokenSample): number =>
  createAdaptedView(CONFIG, rows.state().parameters).token(sample).margin;

test('[ML5] a learned token is said in its context, and other contexts keep their bits', () => {
  const rows = createTokenRows(SHAPE, null, []);
  const [taught, other] = [sampleOf(3, 2, 1), sampleOf(5, 1, -2)];
  const before = marginOf(rows, other);
  learn(rows, taught);
  expect(marginOf(rows, taught)).toBeGreaterThan(0.1);
  // Orthogonal hidden states.
  expect(marginOf(rows, other)).toBe(before);
});

test('[ML5] hidden states of unrelated texts do not change at all', () => {
  const [taught, unrelated] = [sampleOf(3, 2, 1), sampleOf(0, 1, 1, 1)];
  const rows = createTokenRows(SHAPE, null, orthonormal([unrelated.hidden]));
  const before = marginOf(rows, unrelated);
  learn(rows, taught);
  expect(marginOf(rows, taught)).toBeGreaterThan(0.1);
  expect(marginOf(rows, unrelated)).toBeCloseTo(before, 5);
  // A context that is nothing but unrelated ones cannot be taught.
  const state = rows.state();
  learn(rows, { ...unrelated, label: 4 });
  expect(rows.state().parameters).toEqual(state.parameters);
});

test('[ML6] a token that is said already takes no step; a rejected one gets less likely', () => {
  const rows = createTokenRows(SHAPE, null, []);
  rows.adapt([sampleOf(0, 1)], { quality: 1 });
  expect(rows.applyUpdates(0.1)).toMatchObject({ version: 0, norm: 0 });
  const rejected = sampleOf(0, 1);
  const logp = (): number => createAdaptedView(CONFIG, rows.state().parameters).token(rejected).logp;
  const before = logp();
  learn(rows, rejected, 0, 3);
  expect(logp()).toBeLessThan(before);
});

test('[ML6] with all rows in use the one with the least effect is given away', () => {
  const rows = createTokenRows(SHAPE, null, []);
  const contexts = [sampleOf(2, 3), sampleOf(3, 0, 3), sampleOf(4, 0, 0, 3)];
  learn(rows, contexts[0]!, 1, 1);
  for (const context of contexts.slice(1)) learn(rows, context);
  learn(rows, sampleOf(5, 0, 0, 0, 3));
  expect(marginOf(rows, contexts[0]!)).toBeLessThan(0);
  for (const context of contexts.slice(1)) expect(marginOf(rows, context)).toBeGreaterThan(0);
});

test('[ML6] the norm has a cap, and a restored state continues to the same bits', () => {
  const rows = createTokenRows(SHAPE, null, []);
  for (let i = 0; i < 200; i++) {
    rows.adapt([sampleOf(i % 2 === 0 ? 6 : 7, 0.1)], { quality: 1 });
    expect(rows.applyUpdates(1).norm).toBeLessThanOrEqual(1 + 1e-6);
  }
  const again = createTokenRows(SHAPE, rows.state(), []);
  for (const one of [rows, again]) learn(one, sampleOf(3, 2, 1), 1, 2);
  expect(again.state()).toEqual(rows.state());
});
