import { expect, test } from 'vitest';
import { learnable } from '../test-examples.contract.ts';
import { loadKnn, trainKnn } from './knn.ts';

const { encoder, examples } = learnable(150, 1);
const fresh = learnable(20, 2, encoder).examples;
const options = { k: 7, prior: 0 };

test('outcomes that come one after the other are judged as those that were there, also beyond the first room', () => {
  const known = examples.map(({ input, outcomes, group }) => ({
    input,
    group,
    outcomes: Float32Array.of(outcomes[0]!, NaN),
  }));
  const all = trainKnn(known, 2, options);
  const learned = trainKnn(known.slice(0, 3), 2, options);
  for (const { input, outcomes } of known.slice(3))
    learned.update({ input, candidate: 0, quality: outcomes[0]!, propensity: 1 });
  const answers = (estimator: typeof all) =>
    fresh.map(({ input }) => {
      const { qualities, why } = estimator.estimate(input);
      return [qualities[0], why.neighbours];
    });
  expect(answers(learned)).toEqual(answers(all));
  expect(answers(loadKnn(learned.save()))).toEqual(answers(all));
});

test('learns from the first outcomes without training', () => {
  const estimator = trainKnn([], 2, options);
  for (const { input, outcomes } of examples.slice(0, 70))
    estimator.update({ input, candidate: 0, quality: outcomes[0]!, propensity: 1 });
  const [first] = examples;
  const { neighbours } = estimator.estimate(first!.input).why;
  expect(neighbours).toHaveLength(7);
  expect(neighbours![0]!.similarity).toBeCloseTo(1, 5);
  expect(neighbours![0]!.index).toBe(0);
});

test('the neighbours are the nearest of all, each with its own similarity', () => {
  const estimator = trainKnn(examples.slice(0, 41), 2, options);
  for (const { input } of fresh) {
    const all = examples.slice(0, 41).map(({ input: other }, index) => ({
      index,
      similarity: other.embedding.reduce((sum, value, i) => sum + value * input.embedding[i]!, 0),
    }));
    const nearest = all.sort((a, b) => b.similarity - a.similarity || a.index - b.index).slice(0, 7);
    const { neighbours } = estimator.estimate(input).why;
    expect(neighbours!.map(({ index }) => index)).toEqual(nearest.map(({ index }) => index));
    neighbours!.forEach(({ similarity }, i) => expect(similarity).toBeCloseTo(nearest[i]!.similarity, 12));
  }
});
