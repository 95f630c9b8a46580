import { describe, expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import { createRandom } from '../../core/random.ts';
import { DIM, linkedExample, range } from './fixtures.contract.ts';
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

/** The interval alone would let one in forty through; eight shuffles show the cut, not its rate. */
const NUM_SHUFFLES = campaign({ short: 8, long: 24 });

describe('[GA5] the selection', () => {
  const trained = createReranker(trainReranker(start, train, validation, OPTIONS).state);

  test('accepts a significant gain on held-out queries', () => {
    const selection = selectReranker(trained, { heldOut });
    expect(selection.next).toBe('trained');
    expect(selection.overSimilarity.low).toBeGreaterThan(0);
    expect(selection.trained.ndcg - selection.similarity.ndcg).toBeCloseTo(selection.overSimilarity.mean, 10);
    expect(selection.reason).toMatch(
      /NDCG@10 rises by 0\.\d+ \(95 % 0\.\d+ to 0\.\d+, 60 queries of 60 conversations\)/,
    );
  });

  test('uses held-out queries, not training queries', () => {
    // Held out, other things are used than those that hang together.
    const other = heldOut.map((one) => ({ ...one, used: one.used.map((_, i) => i % 4 === 1) }));
    expect(selectReranker(trained, { heldOut: train }).next).toBe('trained');
    expect(selectReranker(trained, { heldOut: other })).toMatchObject({
      next: 'unchanged',
      reason: expect.stringContaining('not sure'),
    });
  });

  test('keeps similarity if use or edges are random', () => {
    const shuffle = (one: RankExample, i: number) => ({ ...one, used: one.used.map((_, at) => (at + i) % 4 === 0) });
    const misled = trainReranker(start, train.map(shuffle), validation.map(shuffle), OPTIONS).state;
    expect(selectReranker(createReranker(misled), { heldOut }).next).toBe('unchanged');
    const loose = trainReranker(start, examples(1, 80, false), examples(1001, 30, false), OPTIONS).state;
    expect(selectReranker(createReranker(loose), { heldOut: examples(2001, 60, false) }).next).toBe('unchanged');
  });

  test('keeps similarity without a gain or with few queries', () => {
    const { next, reason, overSimilarity } = selectReranker(createReranker(start), { heldOut });
    expect([next, overSimilarity.mean]).toEqual(['unchanged', 0]);
    expect(reason).toContain('not sure');
    expect(selectReranker(trained, { heldOut: heldOut.slice(0, 19) }).reason).toContain(
      '19 held-out queries are too few',
    );
  });

  test('refuses a gain that may be chance', () => {
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

  test('requires a gain over the present order', () => {
    const best = heldOut.map((one) => ({ ...one, candidates: one.candidates.map((candidate, i) => ({ ...candidate, score: one.used[i] ? 1 : 0 })) })); // prettier-ignore
    expect(selectReranker(trained, { heldOut: best })).toMatchObject({
      next: 'unchanged',
      present: { ndcg: 1, mrr: 1 },
    });
  });

  test('counts conversations: sixty queries of three conversations, or of twelve that disagree, are not enough', () => {
    const inOne = (count: number) => heldOut.map((one, i) => ({ ...one, group: `c${i % count}` }));
    expect(selectReranker(trained, { heldOut: inOne(3) }).reason).toContain('of 3 conversations are too few');
    expect(selectReranker(trained, { heldOut: inOne(12) })).toMatchObject({ next: 'trained', numGroups: 12 });
    // Better for the queries of one large conversation only, a little worse for all others.
    const split = heldOut.map((one, i) => ({ ...one, group: i < 40 ? 'large' : `c${i}` }));
    const partly = { state: start, score: (query: RankQuery) => Float64Array.from((query as RankExample).used, (isUsed, i) => ((query as RankExample).group === 'large' && isUsed ? 1 : -i)) }; // prettier-ignore
    const { next, overSimilarity } = selectReranker(partly, { heldOut: split });
    expect([next, overSimilarity.mean > 0.1, overSimilarity.low > 0]).toEqual(['unchanged', true, false]);
  });

  test('refuses a significant gain that is too small', () => {
    const gain = selectReranker(trained, { heldOut }).overSimilarity;
    expect(selectReranker(trained, { heldOut }, { minGain: gain.mean + 1e-6 })).toMatchObject({
      next: 'unchanged',
      reason: expect.stringContaining('less than the'),
    });
    expect(selectReranker(trained, { heldOut }, { minGain: gain.mean - 1e-6 }).next).toBe('trained');
  });

  test('requires a gain on the tuning lists', () => {
    expect(selectReranker(trained, { heldOut, tuned: validation }).next).toBe('trained');
    const random = shuffled(validation, 1);
    const { next, reason } = selectReranker(trained, { heldOut, tuned: random });
    expect([next, reason.includes('on what it was tuned on')]).toEqual(['unchanged', true]);
  });

  test('requires a gain over the active re-ranker, which is removed if similarity beats it', () => {
    expect(selectReranker(trained, { heldOut, serving: trained })).toMatchObject({
      next: 'unchanged',
      reason: expect.stringContaining('against what serves'),
    });
    expect(selectReranker(trained, { heldOut, serving: createReranker(start) }).next).toBe('trained');
    const backwards = { state: start, score: (query: RankQuery) => Float64Array.from(query.candidates, ({ similarity }) => -similarity!) }; // prettier-ignore
    const untrained = createReranker(start);
    expect(selectReranker(untrained, { heldOut, serving: backwards })).toMatchObject({
      next: 'similarity',
      reason: expect.stringMatching(/^back to similarity: NDCG@10 rises by 0/),
    });
    expect(selectReranker(untrained, { heldOut, serving: trained }).next).toBe('unchanged');
  });

  test(`of ${NUM_SHUFFLES} shuffles none gets through, judged by shuffled use or by true use; the truth does`, () => {
    const some = (from: number, count: number) => range(from, count).map((seed) => linkedExample(seed, true, 16));
    const few = { train: some(1, 40), tuned: some(1001, 20), judged: some(2001, 40) };
    const trainOn = (lists: readonly RankExample[], tuned: readonly RankExample[]) =>
      createReranker(trainReranker(start, lists, tuned, { maxEpochs: 5, learningRate: 0.03 }).state);
    const counts = { byShuffled: 0, byTruth: 0 };
    for (let seed = 0; seed < NUM_SHUFFLES; seed++) {
      const tuned = shuffled(few.tuned, 1000 + seed);
      const misled = trainOn(shuffled(few.train, seed), tuned);
      if (selectReranker(misled, { heldOut: shuffled(few.judged, 2000 + seed), tuned }).next !== 'unchanged') counts.byShuffled++; // prettier-ignore
      if (selectReranker(misled, { heldOut: few.judged, tuned }).next !== 'unchanged') counts.byTruth++;
    }
    // 2.5 of 100 of each would be the rate of the interval alone.
    expect(counts).toEqual({ byShuffled: 0, byTruth: 0 });
    const honest = trainOn(few.train, few.tuned);
    expect(selectReranker(honest, { heldOut: few.judged, tuned: few.tuned }).next).toBe('trained');
  });
});

/** As many are used, but others. */
function shuffled(lists: readonly RankExample[], seed: number): RankExample[] {
  const random = createRandom(seed);
  return lists.map((one) => {
    const keys = one.used.map(() => random.next());
    const order = one.used.map((_, i) => i).sort((a, b) => keys[a]! - keys[b]!);
    return { ...one, used: order.map((i) => one.used[i]!) };
  });
}
