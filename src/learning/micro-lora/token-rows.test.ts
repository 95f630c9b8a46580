import { describe, expect, test } from 'vitest';
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

describe('[ML1] a step', () => {
  test('changes only the rows of the given tokens and of the label', () => {
    const rows = createTokenRows(SHAPE, null, []);
    rows.adapt([{ ...sampleOf(7, 2, 1), ids: [2, 5], logits: [1, 0.5], labelLogit: 0 }], { quality: 1 });
    rows.applyUpdates(0.1);
    const { b, rank } = rows.factors()[0]!;
    const ids = [...b.entries()].flatMap(([i, value]) => (value === 0 ? [] : [Math.floor(i / rank)]));
    expect([...new Set(ids)]).toEqual([2, 5, 7]);
  });

  test('goes down the slope of the loss', () => {
    const rows = createTokenRows(SHAPE, null, []);
    const sample = sampleOf(3, 2, 1);
    rows.adapt([sample], { quality: 1 });
    rows.applyUpdates(1e-3);
    const { parameters } = rows.state();
    const bStart = SHAPE.rank * SHAPE.hiddenDim;
    const lossAt = (at: number, step: number): number => {
      const moved = parameters.slice().fill(0, bStart);
      moved[at]! += step;
      return -createAdaptedView(CONFIG, moved).logp(sample);
    };
    const indices = Array.from({ length: SHAPE.vocabSize * SHAPE.rank }, (_, i) => bStart + i);
    const slopes = indices.map((at) => (lossAt(at, 1e-2) - lossAt(at, -1e-2)) / 2e-2);
    const length = Math.hypot(...slopes);
    for (const [i, at] of indices.entries()) expect(parameters[at]! / 1e-3).toBeCloseTo(-slopes[i]! / length, 2);
  });

  test('is no longer than its rate, however large the gradient', () => {
    const rows = createTokenRows(SHAPE, null, []);
    rows.adapt([sampleOf(3, 1000)], { quality: 1 });
    expect(rows.applyUpdates(0.01).gradientNorm).toBeGreaterThan(10);
    expect(Math.hypot(...rows.factors()[0]!.b)).toBeCloseTo(0.01, 5);
  });
});

test('[ML2] neutral feedback and none change nothing', () => {
  const rows = createTokenRows(SHAPE, null, []);
  for (const quality of [0.4, 0.5, 0.6]) {
    expect(rows.adapt([sampleOf(3, 1)], { quality })).toEqual({ isApplied: false, numTokens: 0, skipped: 'neutral' });
  }
  expect(rows.adapt([], { quality: 1 }).skipped).toBe('no tokens');
  expect(rows.applyUpdates()).toMatchObject({ version: 0, norm: 0 });
  expect(rows.state().parameters.every((value) => value === 0)).toBe(true);
});

test('[ML3] factors are copies and of the LM head only', () => {
  const rows = createTokenRows(SHAPE, null, []);
  const [empty] = rows.factors();
  rows.adapt([sampleOf(3, 1)], { quality: 1 });
  expect(rows.applyUpdates(0.1).version).toBe(1);
  const [taught] = rows.factors();
  expect(taught).toMatchObject({ target: 'output', layer: -1, numCols: 6, numRows: 8, rank: 3, scale: 1 });
  expect(taught!.b).not.toEqual(empty!.b);
  expect(empty!.b.every((value) => value === 0)).toBe(true);
});

test('[ML4] bad samples are typed errors and change nothing', () => {
  const rows = createTokenRows(SHAPE, null, []);
  const sample = sampleOf(3, 1);
  const bad: [Partial<TokenSample>, string][] = [
    [{ hidden: new Float32Array(3) }, 'invalid_option'],
    [{ hidden: sample.hidden.with(2, NaN) }, 'bad_gradient'],
    [{ logits: [1] }, 'invalid_option'],
    [{ label: 8 }, 'invalid_token'],
    [{ ids: [1, -1], logits: [0, 0] }, 'invalid_token'],
    [{ ids: [1], logits: [Infinity] }, 'bad_gradient'],
    [{ ids: [1], logits: [0], labelLogit: null }, 'invalid_option'],
  ];
  for (const [change, code] of bad) {
    const call = () => rows.adapt([sample, { ...sample, ...change }], { quality: 1 });
    expect(call, JSON.stringify(change)).toThrowError(expect.objectContaining({ code }));
  }
  for (const quality of [-0.1, 1.1, NaN]) {
    expect(() => rows.adapt([sample], { quality })).toThrowError(expect.objectContaining({ code: 'invalid_option' }));
  }
  expect(rows.applyUpdates()).toMatchObject({ version: 0, numTokens: 0, norm: 0 });
});
