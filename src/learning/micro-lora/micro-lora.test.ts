import { describe, expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { createMicroLora, type MicroLoraConfig } from './micro-lora.ts';
import type { MicroLora, TokenSample } from './types.ts';

const HIDDEN = 12;
const VOCAB = 30;
const config: MicroLoraConfig = { hiddenDim: HIDDEN, vocabSize: VOCAB };

function randomValues(length: number, seed: number, size = 2): Float32Array {
  const random = createRandom(seed);
  return Float32Array.from({ length }, () => (random.next() - 0.5) * size);
}

/** A sample with all logits: what is left out of `ids` then has no weight. */
function sampleOf(seed: number, label: number, ids = Array.from({ length: VOCAB }, (_, i) => i)) {
  const logits = randomValues(VOCAB, seed + 100, 4);
  const logSumExp = Math.log(logits.reduce((sum, value) => sum + Math.exp(value), 0));
  const sample: TokenSample = {
    hidden: randomValues(HIDDEN, seed),
    label,
    ids,
    logits: ids.map((id) => logits[id]!),
    labelLogit: logits[label]!,
    logSumExp,
  };
  return { sample, logits };
}

const parametersOf = (lora: MicroLora): Float32Array => lora.state().parameters;

/** Adds what the adapter adds to the logits of a hidden state. */
function addDelta(lora: MicroLora, hidden: Float32Array, logits: Float32Array): void {
  const { a, b, rank, scale, numRows, numCols } = lora.factors()[0]!;
  for (let r = 0; r < rank; r++) {
    const u = hidden.reduce((sum, value, i) => sum + value * a[r * numCols + i]!, 0) * scale;
    for (let row = 0; row < numRows; row++) logits[row]! += b[row * rank + r]! * u;
  }
}

function lossOf(lora: MicroLora, { sample, logits }: ReturnType<typeof sampleOf>): number {
  const all = logits.slice();
  addDelta(lora, sample.hidden, all);
  return Math.log(all.reduce((sum, value) => sum + Math.exp(value), 0)) - all[sample.label]!;
}

/** Both factors away from zero. */
function warm(seed = 9, of = config): MicroLora {
  const { length } = parametersOf(createMicroLora(of));
  return createMicroLora(of, { parameters: randomValues(length, seed, 0.2), version: 3 });
}

/** No bound on a step: what changes in one of rate 1 is the gradient. */
const unbounded = { ...config, maxGradientNorm: 1e9, maxNorm: 1e9 };
function gradientOf(lora: MicroLora): Float32Array {
  const before = parametersOf(lora);
  lora.applyUpdates(1);
  const after = parametersOf(lora);
  return before.map((value, i) => value - after[i]!);
}

describe('[ML1] gradients', () => {
  test.each([
    ['accepted', 1, 1],
    ['rejected', 0, -1],
    ['half accepted', 0.75, 0.5],
  ] as const)('of an %s token are the slopes of its loss', (_what, quality, strength) => {
    const lora = warm(9, unbounded);
    // Rejecting what is unlikely anyway has hardly a slope.
    const { logits } = sampleOf(1, 7);
    const of = sampleOf(1, logits.indexOf(Math.max(...logits)));
    lora.adapt([of.sample], { quality });
    const parameters = parametersOf(lora);
    const gradient = gradientOf(lora);
    const direction = randomValues(parameters.length, 4);
    const at = (step: number): number => {
      const moved = createMicroLora(config, {
        parameters: parameters.map((value, i) => value + step * direction[i]!),
        version: 0,
      });
      const loss = lossOf(moved, of);
      return strength > 0 ? strength * loss : -strength * -Math.log(1 - Math.exp(-loss));
    };
    const slope = (at(1e-3) - at(-1e-3)) / 2e-3;
    const analytic = gradient.reduce((sum, value, i) => sum + value * direction[i]!, 0);
    expect(Math.abs(slope)).toBeGreaterThan(0.01);
    expect(Math.abs(analytic - slope) / Math.abs(slope)).toBeLessThan(0.01);
  });

  test('of rank 1 are the slopes of its loss, with the right norm', () => {
    const single = { ...unbounded, rank: 1 };
    const lora = warm(9, single);
    const of = sampleOf(1, 7);
    lora.adapt([of.sample], { quality: 1 });
    const parameters = parametersOf(lora);
    const gradient = gradientOf(lora);
    for (const i of [0, HIDDEN - 1, HIDDEN + 7, HIDDEN + 8]) {
      const at = (step: number): number =>
        lossOf(createMicroLora(single, { parameters: parameters.with(i, parameters[i]! + step), version: 0 }), of);
      expect(gradient[i]).toBeCloseTo((at(1e-2) - at(-1e-2)) / 2e-2, 3);
    }
    const { a, b, scale } = lora.factors()[0]!;
    const length = (values: Float32Array): number => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
    lora.adapt([of.sample], { quality: 1 });
    expect(lora.applyUpdates(0).norm).toBeCloseTo(scale * length(a) * length(b), 4);
  });

  test('change only the rows of the given tokens and of the label, in the first step only B', () => {
    const lora = createMicroLora(config);
    const before = parametersOf(lora);
    lora.adapt([sampleOf(1, 7, [2, 5]).sample], { quality: 1 });
    lora.applyUpdates();
    const changed = [...parametersOf(lora).entries()].filter(([i, value]) => value !== before[i]).map(([i]) => i);
    const rows = new Set(changed.map((i) => Math.floor((i - 2 * HIDDEN) / 2)));
    expect([...rows].sort((a, b) => a - b)).toEqual([2, 5, 7]);
  });
});

describe('[ML2] feedback', () => {
  test('makes accepted tokens likelier and rejected ones less likely with each step', () => {
    for (const [quality, sign] of [
      [1, -1],
      [0, 1],
    ] as const) {
      const lora = createMicroLora(config);
      const of = sampleOf(1, 7);
      let last = lossOf(lora, of);
      for (let i = 0; i < 20; i++) {
        lora.adapt([of.sample], { quality });
        lora.applyUpdates();
        const loss = lossOf(lora, of);
        expect((loss - last) * sign).toBeGreaterThan(0);
        last = loss;
      }
    }
  });

  test('changes nothing if it is missing or neutral', () => {
    const lora = createMicroLora(config);
    const { sample } = sampleOf(1, 7);
    const before = parametersOf(lora);
    expect(lora.applyUpdates()).toEqual({ version: 0, numTokens: 0, gradientNorm: 0, norm: 0 });
    for (const quality of [0.4, 0.5, 0.6]) {
      expect(lora.adapt([sample], { quality })).toEqual({ isApplied: false, numTokens: 0, skipped: 'neutral' });
    }
    expect(lora.adapt([], { quality: 1 }).skipped).toBe('no tokens');
    expect(lora.applyUpdates().version).toBe(0);
    expect(parametersOf(lora)).toEqual(before);
  });

  test('makes no step longer than the rate, however large the gradient', () => {
    const lora = createMicroLora({ ...config, alpha: 1000, maxNorm: 100 });
    const before = parametersOf(lora);
    lora.adapt([sampleOf(1, 7).sample], { quality: 1 });
    expect(lora.applyUpdates(0.01).gradientNorm).toBeGreaterThan(10);
    const moved = parametersOf(lora).reduce((sum, value, i) => sum + (value - before[i]!) ** 2, 0);
    expect(Math.sqrt(moved)).toBeCloseTo(0.01, 5);
  });

  test('stays below the norm cap and finite under contradictions', () => {
    const lora = createMicroLora({ ...config, maxNorm: 2 });
    const samples = Array.from({ length: 8 }, (_, i) => sampleOf(i, (i * 5) % VOCAB));
    let most = 0;
    for (let i = 0; i < 4000; i++) {
      const of = samples[i % 8]!;
      lora.adapt([of.sample], { quality: Math.floor(i / 8) % 2 });
      most = Math.max(most, lora.applyUpdates(0.05).norm);
    }
    expect(most).toBeLessThanOrEqual(2);
    expect(most).toBeGreaterThan(1.9);
    const product = lora.factors()[0]!;
    let squares = 0;
    for (let row = 0; row < VOCAB; row++) {
      for (let col = 0; col < HIDDEN; col++) {
        let sum = 0;
        for (let r = 0; r < 2; r++) sum += product.b[row * 2 + r]! * product.a[r * HIDDEN + col]!;
        squares += (sum * product.scale) ** 2;
      }
    }
    expect(Math.sqrt(squares)).toBeCloseTo(lora.applyUpdates().norm, 4);
  });
});

describe('[ML3] factors and state', () => {
  test('factors are copies and of the LM head only', () => {
    const lora = createMicroLora(config);
    const [empty] = lora.factors();
    lora.adapt([sampleOf(1, 7).sample], { quality: 1 });
    expect(lora.factors()).toEqual([empty]);
    expect(lora.applyUpdates().version).toBe(1);
    const [taught] = lora.factors();
    expect(taught).toMatchObject({ target: 'output', layer: -1, numCols: 12, numRows: 30, rank: 2, scale: 8 });
    expect(taught!.b).not.toEqual(empty!.b);
    expect(empty!.b.every((value) => value === 0)).toBe(true);
  });

  test('a copy continues from the state', () => {
    const lora = warm();
    lora.adapt([sampleOf(1, 7).sample], { quality: 1 });
    lora.applyUpdates();
    const copy = createMicroLora(config, structuredClone(lora.state()));
    expect(copy.factors()).toEqual(lora.factors());
    for (const one of [lora, copy]) {
      one.adapt([sampleOf(2, 3).sample], { quality: 1 });
      expect(one.applyUpdates().version).toBe(5);
    }
    expect(copy.state()).toEqual(lora.state());
  });
});

test('[ML4] bad samples are typed errors and change nothing', () => {
  const lora = createMicroLora(config);
  const { sample } = sampleOf(1, 7);
  const bad: [Partial<TokenSample>, string][] = [
    [{ hidden: new Float32Array(3) }, 'invalid_option'],
    [{ hidden: sample.hidden.with(2, NaN) }, 'bad_gradient'],
    [{ logits: [1] }, 'invalid_option'],
    [{ label: VOCAB }, 'invalid_token'],
    [{ ids: [1, -1], logits: [0, 0] }, 'invalid_token'],
    [{ ids: [1], logits: [Infinity] }, 'bad_gradient'],
    [{ ids: [1], logits: [0], labelLogit: null }, 'invalid_option'],
  ];
  for (const [change, code] of bad) {
    const call = () => lora.adapt([sample, { ...sample, ...change }], { quality: 1 });
    expect(call, JSON.stringify(change)).toThrowError(expect.objectContaining({ code }));
  }
  for (const quality of [-0.1, 1.1, NaN]) {
    expect(() => lora.adapt([sample], { quality })).toThrowError(expect.objectContaining({ code: 'invalid_option' }));
  }
  const before = parametersOf(lora);
  expect(lora.applyUpdates()).toMatchObject({ numTokens: 0, gradientNorm: 0 });
  expect(parametersOf(lora)).toEqual(before);
});
