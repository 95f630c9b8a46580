import { expect, test } from 'vitest';
import { createRandom } from '../../../core/random.ts';
import { loadEstimator } from '../policy-kinds.ts';
import type { RouteExample } from '../types.ts';
import { trainLogistic } from './logistic.ts';
import { minimize } from './minimize.ts';
import { lengthPriorOf, LENGTH_ONLY, RIDGE_DEFAULTS, trainRidge } from './ridge.ts';

/** Unit vectors; the second candidate is good where the first number is positive, the first one everywhere by chance. */
function examplesOf(count: number, seed: number): RouteExample[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, (_, i) => {
    const raw = Float32Array.from({ length: 8 }, () => random.next() - 0.5);
    const vector = raw.map((value) => value / Math.hypot(...raw));
    const query = new Float32Array(32);
    query[1] = random.next() - 0.5;
    const features = new Float32Array(128);
    features.set(query);
    const input = { features, query, terms: { indices: new Int32Array(), values: new Float32Array() }, embedding: new Float32Array(16), vector, numTokens: 1 }; // prettier-ignore
    return { input, outcomes: Float32Array.of(+(random.next() < 0.5), +(vector[0]! > 0)), group: `${i % 20}` };
  });
}
const shape = { numCandidates: 2, numBuckets: 256, embedding: 16, vector: 8 };
const rightOf = (estimate: (one: RouteExample) => Float64Array): number => {
  const test = examplesOf(200, 9);
  return test.filter((one) => estimate(one)[1]! > 0.5 === (one.outcomes[1] === 1)).length;
};

test('[R23] logistic regression finds the direction that tells good from bad, and says 0.5 where there is none', () => {
  const estimator = trainLogistic(examplesOf(400, 1), 2);
  expect(rightOf(({ input }) => estimator.estimate(input).qualities)).toBeGreaterThan(185);
  for (const { input } of examplesOf(20, 3)) {
    const [first, second] = estimator.estimate(input).qualities;
    expect(Math.abs(first! - 0.5)).toBeLessThan(0.25);
    expect(second).toBeGreaterThan(0);
    expect(second).toBeLessThan(1);
  }
});

test('[R23] candidates that were never tried get 0.5, and feedback moves them', () => {
  const some = examplesOf(100, 2).map((one) => ({ ...one, outcomes: Float32Array.of(one.outcomes[1]!, NaN) }));
  const estimator = trainLogistic(some, 2);
  const { input } = some[0]!;
  expect(estimator.estimate(input).qualities[1]).toBe(0.5);
  for (let i = 0; i < 20; i++) estimator.update({ input, candidate: 1, quality: 1, propensity: 1 });
  expect(estimator.estimate(input).qualities[1]).toBeGreaterThan(0.8);
});

test('[R23] stored weights decide the same, and those of other candidates or without vectors are refused', () => {
  const examples = examplesOf(200, 4);
  const options = { ...RIDGE_DEFAULTS, isScaled: false, isByVector: true };
  for (const estimator of [trainLogistic(examples, 2), trainRidge(examples, 2, options)]) {
    const loaded = loadEstimator(estimator.save(), shape);
    expect(loaded.name).toBe(estimator.name);
    for (const { input } of examples.slice(0, 5)) expect(loaded.estimate(input)).toEqual(estimator.estimate(input));
    expect(() => loadEstimator(estimator.save(), { ...shape, vector: 0 })).toThrow(/vectors/);
    expect(() => loadEstimator(estimator.save(), { ...shape, numCandidates: 3 })).toThrow(/2 candidates|values, needs/);
  }
});

test('[R23] least squares on vectors find the same direction', () => {
  const estimator = trainRidge(examplesOf(400, 1), 2, { ...RIDGE_DEFAULTS, isScaled: false, isByVector: true });
  expect(estimator.name).toBe('vector ridge');
  expect(rightOf(({ input }) => estimator.estimate(input).qualities)).toBeGreaterThan(180);
});

test('[R24] a longer prompt favours the dearer candidate until outcomes say otherwise', () => {
  expect([...lengthPriorOf([1, 1, 1])]).toEqual([0, 0, 0]);
  expect([...lengthPriorOf([1, 0])]).toEqual([0.01, -0.01]);
  const leadOf = (outcomes: (length: number) => number[]): number => {
    const examples = examplesOf(3000, 5).map((one) => ({ ...one, outcomes: Float32Array.from(outcomes(one.input.query[1]!)) })); // prettier-ignore
    const estimator = trainRidge(examples, 2, { ...LENGTH_ONLY, lengthPrior: lengthPriorOf([0, 1]) });
    const long = examplesOf(1, 6)[0]!.input;
    long.features[1] = 2;
    const [cheap, dear] = estimator.estimate(long).qualities;
    return dear! - cheap!;
  };
  expect(leadOf(() => [0.5, 0.5])).toBeGreaterThan(0.01);
  expect(leadOf((length) => (length > 0 ? [1, 0] : [0, 1]))).toBeLessThan(-0.1);
});

test('the minimum of a quadratic function is found', () => {
  const target = [3, -2, 0.5];
  const found = minimize(3, 50, (point, gradient) => {
    let loss = 0;
    point.forEach((value, i) => {
      gradient[i] = 2 * (i + 1) * (value - target[i]!);
      loss += (i + 1) * (value - target[i]!) ** 2;
    });
    return loss;
  });
  found.forEach((value, i) => expect(value).toBeCloseTo(target[i]!, 5));
});
