import { describe, expect, test } from 'vitest';
import { DIM, linkedExample, randomExample, range } from './fixtures.contract.ts';
import { ndcg, reciprocalRank } from './ranking-metrics.ts';
import { createReranker, untrainedState } from './reranker.ts';
import { selectReranker } from './select.ts';
import { trainReranker } from './train.ts';
import type { RankExample, RankQuery } from './types.ts';

const examples = (from: number, count: number, areEdgesTrue = true): RankExample[] =>
  range(from, count).map((seed) => linkedExample(seed, areEdgesTrue));
const start = untrainedState(DIM);
const train = examples(1, 80);
const validation = examples(1001, 30);
const heldOut = examples(2001, 60);
const OPTIONS = { maxEpochs: 12 };

test('metrics are those of the definitions', () => {
  const used = [false, true, false, true];
  expect(reciprocalRank([4, 3, 2, 1], used)).toBe(1 / 2);
  expect(reciprocalRank([4, 3, 2, 5], used)).toBe(1);
  expect(reciprocalRank([1, 2], [false, false])).toBe(0);
  const best = 1 + 1 / Math.log2(3);
  expect(ndcg([4, 3, 2, 1], used, 10)).toBeCloseTo((1 / Math.log2(3) + 1 / Math.log2(5)) / best, 12);
  expect(ndcg([4, 3, 2, 1], used, 3)).toBeCloseTo(1 / Math.log2(3) / best, 12);
  expect(ndcg([1, 4, 2, 3], used, 2)).toBe(1);
  // What nobody judged takes no place.
  expect(ndcg([4, 3, 2, 1], [null, true, false, null], 10)).toBe(1);
  expect(reciprocalRank([4, 3, 2, 1], [null, false, null, true])).toBe(1 / 2);
});

describe('[GA4] training', () => {
  const report = trainReranker(start, train, validation, OPTIONS);

  test('lowers the loss of lists it has not seen, by what the edges say', () => {
    expect(report).toMatchObject({ numExamples: 80, numValidation: 30, numSkipped: 0 });
    expect(report.lossAfter).toBeLessThan(report.lossBefore - 0.1);
  });

  test('gives the same bits again, and changes nothing it was given', () => {
    const kept = start.parameters.slice();
    const again = trainReranker(start, train, validation, OPTIONS);
    expect(again.state.parameters).toEqual(report.state.parameters);
    expect(start.parameters).toEqual(kept);
    const other = trainReranker(start, train, validation, { ...OPTIONS, seed: 2 });
    expect(other.state.parameters).not.toEqual(report.state.parameters);
  });

  test('returns the best epoch, and the beginning where none is better', () => {
    const misleading = train.map((one) => ({ ...one, used: one.used.map((isUsed) => !isUsed) }));
    const worse = trainReranker(report.state, misleading, validation, { ...OPTIONS, patience: 3 });
    expect(worse).toMatchObject({ bestEpoch: 0, numEpochs: 3 });
    expect(worse.lossAfter).toBe(worse.lossBefore);
    expect(worse.state.parameters).toEqual(report.state.parameters);
  });

  test('a gradient that is no number is told, and nothing changes', () => {
    const kept = start.parameters.slice();
    const [first, ...rest] = train[0]!.candidates;
    const huge = { ...train[0]!, candidates: [{ ...first!, similarity: 1e308 }, ...rest] };
    expect(() => trainReranker(start, [huge], validation)).toThrow(expect.objectContaining({ code: 'bad_gradient' }));
    expect(() => trainReranker(start, train, [huge])).toThrow(expect.objectContaining({ code: 'bad_gradient' }));
    expect(start.parameters).toEqual(kept);
  });

  test('lists of which all or none were used teach nothing; without others there is nothing to train', () => {
    const none = { ...train[0]!, used: train[0]!.used.map(() => false) };
    expect(trainReranker(start, [none, ...train.slice(0, 3)], validation, { maxEpochs: 1 })).toMatchObject({ numExamples: 3, numSkipped: 1 }); // prettier-ignore
    expect(() => trainReranker(start, [none], validation)).toThrow('0 examples and 30 to validate');
    expect(() => trainReranker(start, [{ ...train[0]!, used: [true] }], validation)).toThrow('says of 1 of 24');
    expect(() => trainReranker(start, [randomExample(1, 9, 5)], validation)).toThrow('query of 5 values');
    expect(() => trainReranker(start, train, validation, { speed: 2 } as object)).toThrow('unknown option');
  });
});

describe('[GA5] the selection', () => {
  const trained = createReranker(trainReranker(start, train, validation, OPTIONS).state);

  test('takes what surely ranks held-out queries better', () => {
    const selection = selectReranker(trained, { heldOut });
    expect(selection.next).toBe('trained');
    expect(selection.overSimilarity.low).toBeGreaterThan(0);
    expect(selection.trained.ndcg - selection.similarity.ndcg).toBeCloseTo(selection.overSimilarity.mean, 10);
    expect(selection.reason).toMatch(
      /NDCG@10 rises by 0\.\d+ \(95 % 0\.\d+ to 0\.\d+, 60 queries of 60 conversations\)/,
    );
  });

  test('is decided on what is held out, not on what it was trained on', () => {
    // Held out, other things are used than those that hang together.
    const other = heldOut.map((one) => ({ ...one, used: one.used.map((_, i) => i % 4 === 1) }));
    expect(selectReranker(trained, { heldOut: train }).next).toBe('trained');
    expect(selectReranker(trained, { heldOut: other })).toMatchObject({
      next: 'unchanged',
      reason: expect.stringContaining('not sure'),
    });
  });

  test('keeps similarity where use was at random, and where edges are', () => {
    const shuffle = (one: RankExample, i: number) => ({ ...one, used: one.used.map((_, at) => (at + i) % 4 === 0) });
    const misled = trainReranker(start, train.map(shuffle), validation.map(shuffle), OPTIONS).state;
    expect(selectReranker(createReranker(misled), { heldOut }).next).toBe('unchanged');
    const loose = trainReranker(start, examples(1, 80, false), examples(1001, 30, false), OPTIONS).state;
    expect(selectReranker(createReranker(loose), { heldOut: examples(2001, 60, false) }).next).toBe('unchanged');
  });

  test('keeps similarity where the untrained one is the same, or queries are few', () => {
    const { next, reason, overSimilarity } = selectReranker(createReranker(start), { heldOut });
    expect([next, overSimilarity.mean]).toEqual(['unchanged', 0]);
    expect(reason).toContain('not sure');
    expect(selectReranker(trained, { heldOut: heldOut.slice(0, 19) }).reason).toContain(
      '19 held-out queries are too few',
    );
  });

  test('a gain that may be luck is none', () => {
    // Perfect for a few more queries than it takes to be as good as similarity, as bad as can be for the others.
    const queries = heldOut.slice(0, 24).map((one) => ({
      ...one,
      candidates: one.candidates.map((candidate, i) => ({ ...candidate, score: one.used[i] ? 0 : 1 })),
    }));
    const numPerfect = Math.ceil(24 * selectReranker(createReranker(start), { heldOut: queries }).similarity.ndcg) + 1;
    const lucky = {
      state: start,
      score: (query: RankQuery) => {
        const at = queries.indexOf(query as (typeof queries)[number]);
        return Float64Array.from(queries[at]!.used, (isUsed) => (isUsed === at < numPerfect ? 1 : 0));
      },
    };
    const { next, reason, overSimilarity, overPresent } = selectReranker(lucky, { heldOut: queries });
    expect([next, overSimilarity.mean > 0, overPresent.low > 0]).toEqual(['unchanged', true, true]);
    expect(reason).toContain('against similarity: that it rises is not sure');
  });

  test('must beat the present order, too', () => {
    const best = heldOut.map((one) => ({ ...one, candidates: one.candidates.map((candidate, i) => ({ ...candidate, score: one.used[i] ? 1 : 0 })) })); // prettier-ignore
    expect(selectReranker(trained, { heldOut: best })).toMatchObject({
      next: 'unchanged',
      present: { ndcg: 1, mrr: 1 },
    });
  });
});
