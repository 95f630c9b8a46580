import { expect, test } from 'vitest';
import { trainKnn } from './baselines/knn.ts';
import { trainLinear, LINEAR_DEFAULTS } from './baselines/linear.ts';
import { importanceOf, utilitiesOf } from './labels.ts';
import { candidate, learnable } from './test-examples.contract.ts';

const { examples } = learnable(20, 1);
const input = { ...examples[0]!.input, numTokens: 10 };
const example = (outcomes: number[], propensities?: number[]) => ({
  input,
  outcomes: Float32Array.from(outcomes),
  ...(propensities && { propensities: Float32Array.from(propensities) }),
  group: 'g',
});
const candidates = [candidate('a', 0.001, 100), candidate('b', 0.01, 2000), candidate('c', 0, 0)];

test('[R8] utility is quality less λ·seconds and μ·cost, unknown where nothing was tried', () => {
  const weights = { perSecond: 0.1, perCost: 2 };
  const utilities = utilitiesOf(example([0.9, 1, NaN]), candidates, weights);
  expect(utilities[0]).toBeCloseTo(0.9 - 0.01 - 0.02, 6);
  expect(utilities[1]).toBeCloseTo(1 - 0.2 - 0.2, 6);
  expect(utilities[2]).toBeNaN();
});

test('[R9] rarely tried candidates weigh more, up to a limit', () => {
  expect(importanceOf(0.25)).toBe(4);
  expect(importanceOf(0.001)).toBe(20);
  for (const bad of [0, -1, 1.5, NaN]) expect(() => importanceOf(bad)).toThrow(/propensity/);
});

test('[R9] importance undoes a choice that depended on the outcome: both kinds of training see the true mean', () => {
  // Nine of ten good outcomes were skipped: unweighted the candidate looks bad.
  const good = Array.from({ length: 20 }, () => example([1], [0.1]));
  const bad = Array.from({ length: 200 }, () => example([0], [1]));
  const trueMean = 200 / 400;
  const { qualities } = trainKnn([...good, ...bad], 1, { k: 220, prior: 0 }).estimate(input);
  expect(qualities[0]).toBeCloseTo(trueMean, 2);
  const linear = trainLinear([...good, ...bad], 1, 512, {
    ...LINEAR_DEFAULTS,
    queryScale: 1,
    ridge: 0.1,
    numEpochs: 40,
  });
  expect(Math.abs(linear.estimate(input).qualities[0]! - trueMean)).toBeLessThan(0.05);
});
