import { expect, test } from 'vitest';
import { createRandom } from '../src/core/random.ts';
import { learnable } from '../src/learning/router/test-examples.contract.ts';
import { mlpGradient, mlpLength, trainMlp } from '../bench/support/learn/routers/mlp.ts';

const { encoder, examples } = learnable(200, 1);
const fresh = learnable(60, 2, encoder).examples;

test('[R1] the gradient matches finite differences, weighted by the inverse probability of the try', () => {
  const random = createRandom(3);
  const params = Float32Array.from({ length: mlpLength(2) }, () => random.next() - 0.5);
  const example = { ...examples[0]!, outcomes: Float32Array.of(0.25, NaN), propensities: Float32Array.of(0.5, 1) };
  const gradient = new Float32Array(params.length);
  mlpGradient(params, example, gradient);
  const lossAt = (i: number, by: number): number => {
    const moved = params.slice();
    moved[i]! += by;
    return mlpGradient(moved, example, new Float32Array(params.length));
  };
  for (let i = 0; i < params.length; i += 7) {
    const numeric = (lossAt(i, 1e-2) - lossAt(i, -1e-2)) / 2e-2;
    expect(Math.abs(gradient[i]! - numeric), `parameter ${i}`).toBeLessThan(2e-3);
  }
  expect(gradient.some((value) => Math.abs(value) > 0.05)).toBe(true);
});

test('[R4] learns to separate requests, identically for the same seed', () => {
  const estimator = trainMlp(examples, fresh, 2);
  const isRight = fresh.map(({ input, outcomes }) => estimator.estimate(input).qualities[0]! > 0.5 === (outcomes[0] === 1)); // prettier-ignore
  expect(isRight.filter(Boolean).length).toBeGreaterThanOrEqual(57);
  expect(trainMlp(examples, fresh, 2).save()).toEqual(estimator.save());
  expect(trainMlp(examples, fresh, 2, { seed: 2 }).save()).not.toEqual(estimator.save());
});

test('[R5] outcomes that are not numbers of quality give no network', () => {
  const bad = examples.map((one) => ({ ...one, outcomes: Float32Array.of(Infinity, 1) }));
  expect(() => trainMlp(bad, [], 2)).toThrow(expect.objectContaining({ code: 'bad_gradient' }));
});

test('gives no estimate without data', () => {
  expect([...trainMlp([], [], 3).estimate(fresh[0]!.input).qualities]).toEqual([0.5, 0.5, 0.5]);
});
