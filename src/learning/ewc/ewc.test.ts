import { describe, expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { DEFAULT_POLICIES } from '../../memory/policies/defaults.ts';
import { type BoundaryState, createBoundaryDetector } from './boundary-detector.ts';
import { adaptLambda, createEwc, type EwcTask } from './ewc.ts';
import { createFisherEstimate } from './fisher.ts';

const vector = (...values: number[]): Float32Array => Float32Array.from(values);
const FISHER = { decay: 0.999, floor: 1e-6 };

describe('[EW1] the penalty', () => {
  const penalty = (tasks: readonly EwcTask[], lambda: number, at: Float32Array): number =>
    tasks.reduce(
      (sum, { anchor, fisher }) =>
        sum + at.reduce((part, value, i) => part + (lambda / 2) * fisher[i]! * (value - anchor[i]!) ** 2, 0),
      0,
    );

  test('adds its slope, summed over tasks, to the gradient', () => {
    const tasks = [
      { anchor: vector(0.5, -0.5), fisher: vector(2, 0.3) },
      { anchor: vector(1, 1), fisher: vector(0.1, 1) },
    ];
    const at = vector(0.7, 0.1);
    const gradient = vector(10, 20);
    createEwc(2, tasks, 2000).addPenaltyGradient(at, gradient);
    for (const i of [0, 1]) {
      const step = 1 / 64;
      const [high, low] = [at.with(i, at[i]! + step), at.with(i, at[i]! - step)];
      const slope = (penalty(tasks, 2000, high) - penalty(tasks, 2000, low)) / (2 * step);
      expect(gradient[i]! - (i + 1) * 10).toBeCloseTo(slope, 1);
      expect(Math.abs(slope)).toBeGreaterThan(50);
    }
  });

  test('is zero at the parameters of the task', () => {
    const gradient = vector(1, 2);
    createEwc(2, [{ anchor: vector(3, 4), fisher: vector(5, 6) }], 2000).addPenaltyGradient(vector(3, 4), gradient);
    expect(gradient).toEqual(vector(1, 2));
  });
});

test('[EW2] the Fisher estimate decays, is unbiased at its start and stays above the floor', () => {
  const fisher = createFisherEstimate(2, { decay: 0.5, floor: 1e-6 });
  fisher.observe(vector(1, 0));
  fisher.observe(vector(3, 0));
  expect(fisher.numSamples).toBe(2);
  // (0.5 · 0.5 · 1 + 0.5 · 9) / (1 − 0.25)
  expect(fisher.values()[0]).toBeCloseTo(4.75 / 0.75, 5);
  expect(fisher.values()[1]).toBeCloseTo(1e-6, 9);
});

test('[EW3] λ rises after earlier tasks got worse, falls while they are stable, within its bounds', () => {
  const { parameters: bounds } = DEFAULT_POLICIES.ewc;
  const after = (lambda: number, losses: { before: number; after: number } | null, times = 1): number =>
    Array.from({ length: times }).reduce((value: number) => adaptLambda(value, losses, bounds), lambda);
  expect(after(2000, { before: 1, after: 1.2 })).toBeCloseTo(2200);
  expect(after(2200, { before: 1, after: 1.005 })).toBeCloseTo(1980);
  expect(after(2000, null)).toBe(2000);
  expect(after(2000, { before: 1, after: 2 }, 100)).toBe(15_000);
  expect(after(2000, { before: 1, after: 0.5 }, 100)).toBe(100);
});

describe('[EW4] boundaries', () => {
  const draw = (seed: number, axis: number, dim = 64): (() => Float32Array) => {
    const random = createRandom(seed);
    return () => {
      const values = Float32Array.from({ length: dim }, (_, i) => (i === axis ? 1.5 : 0) + 2 * random.next() - 1);
      const length = Math.hypot(...values);
      return values.map((value) => value / length);
    };
  };
  /** At which of the examples a boundary was found, and how many examples the new task had by then. */
  function observe(embeddings: readonly Float32Array[], from: BoundaryState | null = null, minSamples = 50) {
    const detector = createBoundaryDetector(minSamples, from);
    const found = embeddings.flatMap((embedding, i) => {
      const numNew = detector.observe(embedding, i);
      return numNew === 0 ? [] : [{ index: i, first: i - numNew + 1 }];
    });
    return { found, state: detector.state() };
  }
  const take = (count: number, next: () => Float32Array) => Array.from({ length: count }, next);

  test('are found within a window of the change and placed at it', () => {
    for (let seed = 0; seed < 20; seed++) {
      const { found } = observe([...take(150, draw(seed, 0)), ...take(50, draw(seed + 100, 1))]);
      expect(found, `seed ${seed}`).toHaveLength(1);
      expect(found[0]!.index).toBeLessThan(170);
      expect(Math.abs(found[0]!.first - 150), `seed ${seed}`).toBeLessThanOrEqual(3);
    }
  });

  test('are not found in one task, by chance or by a few outliers', () => {
    for (let seed = 0; seed < 20; seed++) {
      const one = take(500, draw(seed, 0));
      one.splice(300, 3, ...take(3, draw(seed + 100, 1)));
      expect(observe(one).found, `seed ${seed}`).toEqual([]);
    }
    expect(observe(take(200, () => vector(0.6, 0.8))).found).toEqual([]);
  });

  test('require their samples, and each task starts over', () => {
    const [a, b] = [take(60, draw(1, 0)), take(60, draw(2, 1))];
    expect(observe([...a, ...b], null, 101).found).toEqual([]);
    expect(observe([...a, ...b, ...take(60, draw(3, 0)), ...take(60, draw(4, 1))], null, 30).found).toHaveLength(3);
  });

  test('are the same when the stream is interrupted anywhere', () => {
    const all = [...take(80, draw(5, 0)), ...take(30, draw(6, 1))];
    const whole = observe(all).state;
    for (const cut of [0, 5, 30, 79, 95, 109]) {
      expect(observe(all.slice(cut), observe(all.slice(0, cut)).state).state.center, `cut ${cut}`).toEqual(
        whole.center,
      );
    }
  });
});

test('[EW5] wrong lengths and values that are not finite are errors and change nothing', () => {
  const fisher = createFisherEstimate(2, FISHER);
  fisher.observe(vector(1, 2));
  const detector = createBoundaryDetector(50, null);
  detector.observe(vector(1, 0), 0);
  const before = JSON.stringify([fisher.values(), detector.state()]);
  const calls: [() => unknown, string][] = [
    [() => fisher.observe(vector(1)), 'invalid_option'],
    [() => fisher.observe(vector(1, NaN)), 'bad_gradient'],
    [() => createEwc(3, [{ anchor: vector(1, 2), fisher: vector(1, 2, 3) }], 1), 'invalid_option'],
    [() => createEwc(2, [{ anchor: vector(1, 2), fisher: vector(1) }], 1), 'invalid_option'],
    [() => detector.observe(vector(1), 0), 'invalid_option'],
    [() => detector.observe(vector(1, Infinity), 0), 'bad_gradient'],
  ];
  for (const [call, code] of calls) expect(call, String(call)).toThrowError(expect.objectContaining({ code }));
  expect(JSON.stringify([fisher.values(), detector.state()])).toBe(before);
});
