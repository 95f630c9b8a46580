import { expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { RIDGE_DEFAULTS, type Trainer, trainRidge } from '../router/index.ts';
import { sumsAndLetters } from '../router/test-examples.contract.ts';
import type { RatedRoute } from '../router-training/train-router.ts';
import { measureOffPolicy } from './off-policy-gain.ts';
import { rankAtRandom, rankByVectors, rankByWords } from './rankings.ts';
import { boundedFigure, compareRetrieval, ranksIn, recallAt, reciprocalRank } from './retrieval.ts';

test('recall counts all relevant texts, and the reciprocal rank the first one', () => {
  expect([1, 2, 5].map((k) => recallAt([0, 3, Infinity], k))).toEqual([1 / 3, 1 / 3, 2 / 3]);
  expect(reciprocalRank([3, 1])).toBe(0.5);
  expect(reciprocalRank([Infinity])).toBe(0);
  expect(ranksIn([4, 2, 9], [9, 4, 7])).toEqual([2, 0, Infinity]);
});

test('twelve hits out of twelve are no certainty', () => {
  const all = boundedFigure(Array.from({ length: 12 }, () => 1));
  expect(all).toMatchObject({ mean: 1, high: 1 });
  // Wilson: n / (n + z²).
  expect(all.low).toBeCloseTo(12 / (12 + 1.96 ** 2), 10);
  const half = boundedFigure([0, 1, 0, 1, 0, 1, 0, 1]);
  expect(half.mean - half.low).toBeCloseTo(half.high - half.mean, 10);
});

test('gains are paired with the first method, query by query', () => {
  const [first, second] = compareRetrieval({ words: [[0], [Infinity], [4]], meaning: [[0], [0], [0]] }, [1, 5]);
  expect(first).toMatchObject({ name: 'words', gains: null });
  expect(first!.figures['recall@1']!.mean).toBeCloseTo(1 / 3, 10);
  expect(first!.figures['recall@5']!.mean).toBeCloseTo(2 / 3, 10);
  expect(second!.gains!['recall@1']!.mean).toBeCloseTo(2 / 3, 10);
  expect(second!.gains!['MRR']!.mean).toBeCloseTo(1 - (1 + 0 + 0.2) / 3, 10);
  expect(second!.gains!['recall@1']!.low).toBeLessThan(2 / 3);
});

test('rankings put the best text first, by words, by vectors and at random', () => {
  expect(rankByWords(['red boat', 'green house', 'blue boat'], ['green', 'cat'])).toEqual([[1], []]);
  const axis = (i: number): Float32Array => Float32Array.from([0, 1, 2], (j) => Number(i === j));
  expect(rankByVectors([axis(0), axis(1), axis(2)], [axis(2)])).toEqual([[2, 0, 1]]);
  const order = rankAtRandom(50, 2, 1);
  expect(order).toEqual(rankAtRandom(50, 2, 1));
  expect(order).not.toEqual(rankAtRandom(50, 2, 2));
  for (const rows of order) expect(rows.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i));
});

/** Each request was answered by one of two candidates at random; the small one fails at sums. */
function routesOf(count: number, isShuffled: boolean): RatedRoute[] {
  const random = createRandom(5);
  return sumsAndLetters(count, 3).map(({ text, isHard, group }) => {
    const candidate = Math.floor(random.next() * 2);
    const isReallyHard = isShuffled ? random.next() < 0.5 : isHard;
    // The large candidate is bad at talk: each is right where the other is not.
    const quality = (candidate === 1) === isReallyHard ? 1 : 0;
    return { request: { turns: [text] }, candidate, quality, propensity: 0.5, group };
  });
}

test('a router is better than every fixed choice where the text tells which candidate is right, and not where it does not', () => {
  const ridge = { name: 'ridge', train: (...all: Parameters<Trainer>) => trainRidge(all.flat(), 2, { ...RIDGE_DEFAULTS, name: 'ridge' }) }; // prettier-ignore
  const task = { names: ['small', 'large'], costs: [1, 10], seed: 1, contestants: [ridge] };
  const real = measureOffPolicy(routesOf(120, false), task);
  expect(real.fixed.map(({ name }) => name)).toEqual(['always small', 'always large', 'random']);
  expect(real.fixed.map(({ cost }) => cost)).toEqual([1, 10, 5.5]);
  expect(real.blind.cost).toBeLessThanOrEqual(real.router.cost + 1e-9);
  expect(real.gains['blind mixture']!.low).toBeGreaterThan(0.1);
  expect(real.router.quality).toBeGreaterThan(0.8);
  const noise = measureOffPolicy(routesOf(120, true), task);
  expect(noise.gains['blind mixture']!.low).toBeLessThanOrEqual(0);
});

test('too few rated requests are refused with their number', () => {
  const task = { names: ['small', 'large'], costs: [1, 10], seed: 1 };
  expect(() => measureOffPolicy(routesOf(19, false), task)).toThrow(
    '19 rated requests of 2 candidates; at least 20 of 2',
  );
});
