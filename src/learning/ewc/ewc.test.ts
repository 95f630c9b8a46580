import { describe, expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { createEwc, type EwcOptions } from './ewc.ts';

const vector = (...values: number[]): Float32Array => Float32Array.from(values);

function learned(gradients: readonly Float32Array[], parameters: Float32Array, options: EwcOptions = {}) {
  const ewc = createEwc(parameters.length, { minSamples: 1, ...options });
  for (const gradient of gradients) ewc.observe(gradient);
  ewc.consolidate(parameters);
  return ewc;
}

describe('[EW1] the penalty', () => {
  test('is λ/2 · F · (θ − θ*)², from one sample on', () => {
    const ewc = learned([vector(2, 0, 0.5)], vector(1, 1, 1));
    // The floor 1e-6 stands where no gradient was.
    const expected = 1000 * (4 * 0.01 + 1e-6 * 4 + 0.25 * 1);
    expect(ewc.penalty(vector(1.1, 3, 0))).toBeCloseTo(expected, 3);
    expect(ewc.penalty(vector(1, 1, 1))).toBe(0);
    expect(ewc.penalty(vector(1.1, 3, 0), 20)).toBeCloseTo(expected / 100, 5);
  });

  test('has the slope that is added', () => {
    const ewc = learned([vector(2, 0.3), vector(0.1, 1)], vector(0.5, -0.5));
    const at = vector(0.7, 0.1);
    const gradient = vector(10, 20);
    ewc.addPenaltyGradient(at, gradient);
    for (const i of [0, 1]) {
      const step = 1 / 64;
      const slope = (ewc.penalty(at.with(i, at[i]! + step)) - ewc.penalty(at.with(i, at[i]! - step))) / (2 * step);
      expect(gradient[i]! - (i + 1) * 10).toBeCloseTo(slope, 1);
      expect(Math.abs(slope)).toBeGreaterThan(50);
    }
  });

  test('adds up over tasks, of which the oldest is forgotten first', () => {
    const ewc = createEwc(1, { minSamples: 1, maxTasks: 2, lambda: 2 });
    for (const anchor of [10, 0, 1]) {
      ewc.observe(vector(1));
      ewc.consolidate(vector(anchor));
    }
    expect(ewc.stats().numTasks).toBe(2);
    expect(ewc.penalty(vector(0))).toBeCloseTo(1, 6); // of the task at 1; that at 10 is gone
  });
});

describe('[EW2] the Fisher estimate', () => {
  test('decays, and has no bias of its start', () => {
    const ewc = learned([vector(1), vector(3)], vector(0), { decay: 0.5, lambda: 2 });
    // (0.5 · 0.5 · 1 + 0.5 · 9) / (1 − 0.25)
    expect(ewc.penalty(vector(1))).toBeCloseTo(4.75 / 0.75, 5);
  });

  test('needs its samples: too few are a conflict with both numbers', () => {
    const ewc = createEwc(1);
    for (let i = 0; i < 99; i++) ewc.observe(vector(1));
    expect(ewc.canConsolidate()).toBe(false);
    expect(() => ewc.consolidate(vector(0))).toThrowError(
      expect.objectContaining({ code: 'conflict', data: { numSamples: 99, minSamples: 100 } }),
    );
    ewc.observe(vector(1));
    expect(ewc.canConsolidate()).toBe(true);
    ewc.consolidate(vector(0));
    expect(ewc.stats()).toEqual({ numTasks: 1, numSamples: 0, lambda: 2000 });
  });
});

test('[EW3] λ rises while an old task gets worse, falls while it is stable, inside its bounds', () => {
  const ewc = createEwc(1);
  expect(ewc.adaptLambda(1, 1.2)).toBeCloseTo(2200);
  expect(ewc.adaptLambda(1, 1)).toBeCloseTo(1980);
  for (let i = 0; i < 100; i++) ewc.adaptLambda(1, 2);
  expect(ewc.stats().lambda).toBe(15_000);
  for (let i = 0; i < 100; i++) ewc.adaptLambda(1, 0.5);
  expect(ewc.stats().lambda).toBe(100);
  expect(() => ewc.adaptLambda(1, NaN)).toThrowError(expect.objectContaining({ code: 'invalid_option' }));
});

describe('[EW4] boundaries', () => {
  const noise = (seed: number) => {
    const random = createRandom(seed);
    return (mean: number): Float32Array => Float32Array.from({ length: 20 }, () => mean + random.next() - 0.5);
  };

  test('gradients of the same kind are none; of another kind they are, after a few', () => {
    const ewc = createEwc(20);
    const draw = noise(1);
    for (let i = 0; i < 200; i++) expect(ewc.observe(draw(0)).isBoundary).toBe(false);
    expect(ewc.observe(draw(3)).isBoundary).toBe(false); // one odd sample
    const reports = Array.from({ length: 9 }, () => ewc.observe(draw(3)).isBoundary);
    expect(reports.at(-1)).toBe(true);
  });

  test('nothing is said before 50 samples', () => {
    const ewc = createEwc(20);
    const draw = noise(2);
    for (let i = 0; i < 50; i++) expect(ewc.observe(draw(i < 25 ? 0 : 9))).toEqual({ isBoundary: false, score: 0 });
  });

  test('one odd sample right after them is none; a task that was kept starts all over', () => {
    const ewc = createEwc(20, { minSamples: 1 });
    const draw = noise(4);
    for (let i = 0; i < 50; i++) ewc.observe(draw(0));
    const odd = ewc.observe(draw(3));
    expect(odd.score).toBeGreaterThan(2);
    expect(odd.isBoundary).toBe(false);
    ewc.consolidate(draw(0));
    expect(ewc.observe(draw(3))).toEqual({ isBoundary: false, score: 0 });
  });

  test('an embedding more than three deviations away is one', () => {
    const ewc = createEwc(1);
    const draw = noise(3);
    for (let i = 0; i < 100; i++) expect(ewc.observeEmbedding(draw(0)).isBoundary).toBe(false);
    const { isBoundary, score } = ewc.observeEmbedding(draw(1));
    expect(isBoundary).toBe(true);
    expect(score).toBeGreaterThan(3);
  });
});

describe('[EW5] bad input', () => {
  test('wrong lengths and values that are not finite are errors, and change nothing', () => {
    const ewc = learned([vector(1, 2)], vector(0, 0));
    const before = JSON.stringify(ewc.state());
    const calls: [() => unknown, string][] = [
      [() => ewc.observe(vector(1)), 'invalid_option'],
      [() => ewc.observe(vector(1, NaN)), 'bad_gradient'],
      [() => ewc.penalty(vector(1, 2, 3)), 'invalid_option'],
      [() => ewc.addPenaltyGradient(vector(1, 2), vector(1)), 'invalid_option'],
      [() => ewc.addPenaltyGradient(vector(1), vector(1, 2)), 'invalid_option'],
      [() => ewc.consolidate(vector(1)), 'invalid_option'],
      [() => createEwc(3, {}, ewc.state()), 'invalid_option'],
      [() => createEwc(0), 'invalid_option'],
    ];
    for (const [call, code] of calls) expect(call, String(call)).toThrowError(expect.objectContaining({ code }));
    expect(JSON.stringify(ewc.state())).toBe(before);
  });

  test('a state goes on as if nothing had happened', () => {
    const make = (): Float32Array[] => Array.from({ length: 60 }, (_, i) => vector(Math.sin(i), Math.cos(i * 3)));
    const whole = learned(make(), vector(1, 2));
    for (const gradient of make()) whole.observe(gradient);
    whole.observeEmbedding(vector(1, 2, 3));
    const copy = createEwc(2, { minSamples: 1 }, structuredClone(whole.state()));
    for (const ewc of [whole, copy]) {
      for (const gradient of make()) ewc.observe(gradient);
      ewc.observeEmbedding(vector(3, 2, 1));
      ewc.consolidate(vector(0, 1));
    }
    expect(copy.state()).toEqual(whole.state());
    expect(copy.penalty(vector(3, 3))).toBe(whole.penalty(vector(3, 3)));
  });
});
