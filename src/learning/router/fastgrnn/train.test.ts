import { expect, test } from 'vitest';
import { learnable, FREE, SMALL_AND_LARGE } from '../test-examples.contract.ts';
import { createFastGrnn } from './fastgrnn-estimator.ts';
import { sparsityOf } from './sparsity.ts';
import { trainFastGrnn, trainFastGrnnSteps } from './train.ts';

const { encoder, examples } = learnable(160, 1);
const fresh = learnable(60, 2, encoder).examples;
const base = { candidates: SMALL_AND_LARGE, weights: FREE, train: examples, validation: fresh };

test('[R4] it learns what separates requests, W is nine tenths zeros, and the same seed gives the same bits', () => {
  const options = { maxEpochs: 8, learningRate: 5e-3 };
  const trained = trainFastGrnn({ ...base, options });
  expect(sparsityOf(trained.params, trained.layout)).toBeCloseTo(0.9, 3);
  const estimator = createFastGrnn({ ...trained, numCandidates: 2 });
  const isRight = fresh.map(({ input, outcomes }) => {
    const { qualities } = estimator.estimate(input);
    return qualities[0]! > 0.5 === (outcomes[0] === 1) && qualities[1]! > 0.5;
  });
  expect(isRight.filter(Boolean).length).toBeGreaterThanOrEqual(57);
  expect(trainFastGrnn({ ...base, options }).params).toEqual(trained.params);
  expect(trainFastGrnn({ ...base, options: { ...options, seed: 2 } }).params).not.toEqual(trained.params);
});

test('[R5] a gradient that is not a number is refused and what was given is unchanged', () => {
  const trained = trainFastGrnn({ ...base, options: { maxEpochs: 4 } });
  const before = trained.params.slice();
  let numSteps = 0;
  const penaltyGradient = (_: Float32Array, out: Float32Array): void => {
    if (++numSteps === 3) out[7] = NaN; // after steps that did change something, on a copy
  };
  expect(() => trainFastGrnn({ ...base, start: trained, penaltyGradient, options: { maxEpochs: 1 } })).toThrow(
    expect.objectContaining({
      code: 'bad_gradient',
      message: expect.stringMatching(/parameter 7 .*nothing was changed/),
    }),
  );
  expect(trained.params).toEqual(before);
});

test('[R6] a penalty reaches the parameters, and what the mask cut stays cut', () => {
  const start = trainFastGrnn({ ...base, options: { maxEpochs: 4 } });
  const distance = (params: Float32Array): number => Math.hypot(...params.map((value, i) => value - start.params[i]!));
  const penaltyGradient = (params: Float32Array, out: Float32Array): void => {
    for (let i = 0; i < out.length; i++) out[i]! += 50 * (params[i]! - start.params[i]!) + 1e-3;
  };
  const options = { maxEpochs: 2 };
  const free = trainFastGrnn({ ...base, start, options });
  const held = trainFastGrnn({ ...base, start, options, penaltyGradient });
  expect(distance(held.params)).toBeLessThan(distance(free.params) / 2);
  expect(sparsityOf(held.params, held.layout)).toBeCloseTo(0.9, 3);
});

test('parameters of another shape and outcomes out of range are refused', () => {
  const mask = { wz: new Int32Array(), wh: new Int32Array() };
  expect(() => trainFastGrnn({ ...base, start: { params: new Float32Array(3), mask } })).toThrow(/3 parameters/);
  const bad = [{ ...examples[0]!, outcomes: Float32Array.of(2, 0) }];
  expect(() => trainFastGrnn({ ...base, train: bad })).toThrow(/from 0 to 1, got 2/);
  expect(() => trainFastGrnn({ ...base, train: [] })).toThrow(/0 examples/);
});

test('training goes batch by batch, so that it can be left in the middle', () => {
  const steps = trainFastGrnnSteps({ ...base, options: { maxEpochs: 4, batchSize: 32 } });
  let numSteps = 0;
  while (!steps.next().done) numSteps += 1;
  expect(numSteps).toBe(4 * (160 / 32));
});
