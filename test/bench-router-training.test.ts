import { expect, test } from 'vitest';
import { candidate, FREE, learnable, SMALL_AND_LARGE } from '../src/learning/router/test-examples.contract.ts';
import { createFastGrnn } from '../bench/support/learn/routers/fastgrnn/fastgrnn-estimator.ts';
import { sparsityOf } from '../bench/support/learn/routers/fastgrnn/sparsity.ts';
import { encodeForBench } from '../bench/support/learn/routers/bench-input.ts';
import { segmentTurns } from '../bench/support/learn/routers/segments.ts';
import { targetsOf } from '../bench/support/learn/routers/fastgrnn/targets-of.ts';
import { trainFastGrnn } from '../bench/support/learn/routers/fastgrnn/train.ts';

const { encoder, examples } = learnable(160, 1);
const fresh = learnable(60, 2, encoder).examples;
const base = { candidates: SMALL_AND_LARGE, weights: FREE, train: examples, validation: fresh };

test('[R4] learns to separate requests with nine tenths of W zero, and the same bits for the same seed', () => {
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

test('[R5] training never changes its input parameters in place', () => {
  const start = trainFastGrnn({ ...base, options: { maxEpochs: 4 } });
  const before = start.params.slice();
  expect(trainFastGrnn({ ...base, start, options: { maxEpochs: 1 } }).params).not.toEqual(before);
  expect(start.params).toEqual(before);
  const broken = { ...start, params: before.with(7, NaN) };
  expect(() => trainFastGrnn({ ...base, start: broken, options: { maxEpochs: 1 } })).toThrow(
    expect.objectContaining({ code: 'bad_gradient' }),
  );
});

test('[R8] [R9] the best known utility is the label; of a single outcome only praise counts', () => {
  const example = (outcomes: number[], propensities?: number[]) => ({
    input: { ...examples[0]!.input, numTokens: 10 },
    outcomes: Float32Array.from(outcomes),
    ...(propensities && { propensities: Float32Array.from(propensities) }),
    group: 'g',
  });
  const candidates = [candidate('a', 0.001, 100), candidate('b', 0.01, 2000), candidate('c', 0, 0)];
  expect(targetsOf(example([0.9, 1, NaN]), candidates, { perSecond: 0.1, perCost: 2 }).choice).toBe(0);
  expect(targetsOf(example([0.9, 1, NaN]), candidates, FREE).choice).toBe(1);
  const { qualityWeights } = targetsOf(example([0.5, 0.5, NaN], [0.5, 0.1, 1]), candidates, FREE);
  expect([...(qualityWeights as Float64Array)].map((weight) => Math.round(weight * 1e4) / 1e4)).toEqual([2, 10, 0]);
  expect(targetsOf(example([NaN, 0.9, NaN]), candidates, FREE)).toMatchObject({ choice: 1 });
  expect(targetsOf(example([NaN, 0.2, NaN]), candidates, FREE)).toMatchObject({ choice: -1, choiceWeight: 0 });
});

test('[R19] earlier turns are segments; a single one is split by lines; the whole is last', () => {
  const question = 'Which of these is not 12?\nA. twelve sheep\nB. a dozen sheep\nC. 13\nD. 7 + 5\nAnswer:';
  expect(segmentTurns(['a', 'b', 'c', 'd', 'e'])).toEqual(['a', 'b', 'c', 'd']);
  expect(segmentTurns(['one line'])).toEqual([]);
  expect(segmentTurns([question]).join('\n')).toBe(question);
  const { segments, features, text } = encodeForBench(encoder, { turns: ['hello', 'Two three'] });
  expect([segments.length, text]).toEqual([2, 'two three']);
  expect(segments[0]).not.toEqual(segments[1]);
  expect(segments[1]).toBe(features);
});

test('rejects parameters of another shape and outcomes out of range', () => {
  const mask = { wz: new Int32Array(), wh: new Int32Array() };
  expect(() => trainFastGrnn({ ...base, start: { params: new Float32Array(3), mask } })).toThrow(/3 parameters/);
  const bad = [{ ...examples[0]!, outcomes: Float32Array.of(2, 0) }];
  expect(() => trainFastGrnn({ ...base, train: bad })).toThrow(/from 0 to 1, got 2/);
  expect(() => trainFastGrnn({ ...base, train: [] })).toThrow(/0 examples/);
});
