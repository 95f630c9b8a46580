import { describe, expect, test } from 'vitest';
import { DIM, linkedExample, randomExample, range } from './fixtures.contract.ts';
import { attend } from './attend.ts';
import { listLoss } from './list-loss.ts';
import { queryDirections } from './parameters.ts';
import { readRankList } from './rank-list.ts';
import { ndcg, reciprocalRank } from './ranking-metrics.ts';
import { untrainedState } from './reranker.ts';
import { trainingSteps, trainReranker } from './train.ts';
import type { RankExample } from './types.ts';

const examples = (from: number, count: number, areEdgesTrue = true): RankExample[] =>
  range(from, count).map((seed) => linkedExample(seed, areEdgesTrue));
const start = untrainedState(DIM);
const train = examples(1, 80);
const validation = examples(1001, 30);
const OPTIONS = { maxEpochs: 12 };

test('metrics match their definitions', () => {
  const used = [false, true, false, true];
  expect(reciprocalRank([4, 3, 2, 1], used)).toBe(1 / 2);
  expect(reciprocalRank([4, 3, 2, 5], used)).toBe(1);
  expect(reciprocalRank([1, 2], [false, false])).toBe(0);
  const best = 1 + 1 / Math.log2(3);
  expect(ndcg([4, 3, 2, 1], used, 10)).toBeCloseTo((1 / Math.log2(3) + 1 / Math.log2(5)) / best, 12);
  expect(ndcg([4, 3, 2, 1], used, 3)).toBeCloseTo(1 / Math.log2(3) / best, 12);
  expect(ndcg([1, 4, 2, 3], used, 2)).toBe(1);
  // Unjudged candidates do not count towards a rank.
  expect(ndcg([4, 3, 2, 1], [null, true, false, null], 10)).toBe(1);
  expect(reciprocalRank([4, 3, 2, 1], [null, false, null, true])).toBe(1 / 2);
});

describe('[GA4] training', () => {
  const report = trainReranker(start, train, validation, OPTIONS);

  test('lowers the loss of unseen lists by their edges', () => {
    expect(report).toMatchObject({ numExamples: 80, numValidation: 30, numSkipped: 0 });
    expect(report.lossAfter).toBeLessThan(report.lossBefore - 0.1);
  });

  test('is deterministic and leaves its input unchanged', () => {
    const kept = start.parameters.slice();
    const again = trainReranker(start, train, validation, OPTIONS);
    expect(again.state.parameters).toEqual(report.state.parameters);
    expect(start.parameters).toEqual(kept);
    const other = trainReranker(start, train, validation, { ...OPTIONS, seed: 2 });
    expect(other.state.parameters).not.toEqual(report.state.parameters);
  });

  test('returns the best epoch, or the start if none is better', () => {
    const misleading = train.map((one) => ({ ...one, used: one.used.map((isUsed) => !isUsed) }));
    const worse = trainReranker(report.state, misleading, validation, { ...OPTIONS, patience: 3 });
    expect(worse).toMatchObject({ bestEpoch: 0, numEpochs: 3 });
    expect(worse.lossAfter).toBe(worse.lossBefore);
    expect(worse.state.parameters).toEqual(report.state.parameters);
  });

  test('ignores candidates of unknown use', () => {
    // The unjudged ones say the opposite of the others: would they count, nothing could be learned.
    const hide = (one: RankExample, isLie: boolean) => ({ ...one, used: one.used.map((isUsed, i) => (i % 3 !== 0 ? isUsed : isLie ? !isUsed : null)) }); // prettier-ignore
    const honest = trainReranker(start, train.map((one) => hide(one, false)), validation, OPTIONS); // prettier-ignore
    const misled = trainReranker(start, train.map((one) => hide(one, true)), validation, OPTIONS); // prettier-ignore
    expect(honest.lossAfter).toBeLessThan(honest.lossBefore - 0.1);
    expect(honest.lossAfter).toBeLessThan(misled.lossAfter);
    const { list, used } = {
      list: readRankList(train[0]!, queryDirections(1, DIM)),
      used: hide(train[0]!, false).used,
    };
    const scores = attend(start.parameters, list).scores;
    const { loss, slopes } = listLoss(scores, used);
    const raised = scores.map((score, i) => (used[i] === null ? score + 50 : score));
    expect(listLoss(raised, used).loss).toBe(loss);
    expect(slopes.filter((_, i) => used[i] === null)).toEqual(new Float64Array(8));
  });

  test('returns the best parameters so far when stopped', () => {
    const steps = trainingSteps(start, train, validation, OPTIONS);
    steps.next(false);
    let numSteps = 0;
    for (;;) {
      const { done, value } = steps.next(++numSteps > 25);
      if (!done) continue;
      expect(value).toMatchObject({ numEpochs: 3 });
      expect(value.bestEpoch).toBeGreaterThan(0);
      expect(value.lossAfter).toBeLessThan(value.lossBefore);
      break;
    }
    expect(numSteps).toBe(26);
  });

  test('throws on a gradient that is not finite and changes nothing', () => {
    const kept = start.parameters.slice();
    const [first, ...rest] = train[0]!.candidates;
    const huge = { ...train[0]!, candidates: [{ ...first!, similarity: 1e308 }, ...rest] };
    expect(() => trainReranker(start, [huge], validation)).toThrow(expect.objectContaining({ code: 'bad_gradient' }));
    expect(() => trainReranker(start, train, [huge])).toThrow(expect.objectContaining({ code: 'bad_gradient' }));
    expect(start.parameters).toEqual(kept);
  });

  test('learns nothing from lists in which all or no candidates were used', () => {
    const none = { ...train[0]!, used: train[0]!.used.map(() => false) };
    expect(trainReranker(start, [none, ...train.slice(0, 3)], validation, { maxEpochs: 1 })).toMatchObject({ numExamples: 3, numSkipped: 1 }); // prettier-ignore
    expect(() => trainReranker(start, [none], validation)).toThrow('0 examples and 30 to validate');
    expect(() => trainReranker(start, [{ ...train[0]!, used: [true] }], validation)).toThrow('says of 1 of 24');
    expect(() => trainReranker(start, [randomExample(1, 9, 5)], validation)).toThrow('query of 5 values');
    expect(() => trainReranker(start, train, validation, { speed: 2 } as object)).toThrow('unknown option');
  });
});
