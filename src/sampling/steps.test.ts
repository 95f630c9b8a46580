import { describe, expect, test } from 'vitest';
import { createRandom } from '../core/random.ts';
import type { TopLogits } from '../core/top-logits.ts';
import { argmax, createCandidates, dropMasked, fillWeights, keepThrough } from './candidates.ts';
import { createChain } from './chain.ts';
import { checkLogits } from './check-logits.ts';
import { DEFAULT_SAMPLING, type GenerateParams, resolveGenerateParams, samplingOf } from './generate-params.ts';
import { firstLogprobs, logSumExp, topLogprobs } from './logprobs.ts';
import { rank } from './ranking.ts';
import { createSampler } from './sampler.ts';
import { findMassCut, ranksBefore, selectTopK } from './select.ts';
import { createStopMatcher } from './stop-matcher.ts';
import { countCandidates } from './top-candidates.ts';
import type { SamplingParams } from './types.ts';

const OFF: GenerateParams = { temperature: 1, topP: 1, topK: 0, minP: 0 };
const paramsOf = (params: GenerateParams, endBan?: SamplingParams['endBan']): SamplingParams => ({
  ...resolveGenerateParams({ ...OFF, ...params }),
  ...(endBan === undefined ? {} : { endBan }),
});

/** The tokens that remain, with the logits after all steps. */
function remaining(
  logits: number[],
  params: GenerateParams,
  history: number[] = [],
  endBan?: SamplingParams['endBan'],
): [number, number][] {
  const all = paramsOf(params, endBan);
  const candidates = createCandidates(logits.length);
  candidates.values.set(logits);
  const chain = createChain(all);
  for (const step of chain) if (step.kind === 'shape') step.apply(candidates, all, history);
  dropMasked(candidates);
  for (const step of chain) if (step.kind === 'truncate') step.apply(candidates, all, history);
  return Array.from(candidates.ids.subarray(0, candidates.count), (id, i) => [id, candidates.values[i]!]);
}
const idsOf = (...args: Parameters<typeof remaining>): number[] => remaining(...args).map(([id]) => id);

/** Logits of these probabilities. */
const logs = (...probabilities: number[]): number[] => probabilities.map(Math.log);

describe('truncation', () => {
  test('top-k keeps the k highest, lower ids among equals', () => {
    expect(idsOf([1, 3, 3, 2, 3], { topK: 1 })).toEqual([1]);
    expect(idsOf([1, 3, 3, 2, 3], { topK: 2 })).toEqual([1, 2]);
    expect(idsOf([1, 3, 3, 2, 3], { topK: 4 })).toEqual([1, 2, 3, 4]);
    expect(idsOf([1, 3, 3, 2, 3], { topK: 5 })).toEqual([0, 1, 2, 3, 4]);
    expect(idsOf([1, 3, 3, 2, 3], { topK: 9 })).toEqual([0, 1, 2, 3, 4]);
  });

  test('min-p keeps what is at least that fraction as likely as the best', () => {
    expect(idsOf(logs(0.5, 0.25, 0.126, 0.12), { minP: 0.25 })).toEqual([0, 1, 2]);
    expect(idsOf(logs(0.5, 0.25, 0.125, 0.12), { minP: 1 })).toEqual([0]);
    expect(idsOf([2, 5, 5, 4], { minP: 1 })).toEqual([1, 2]);
  });

  test('top-p keeps the fewest that reach p', () => {
    expect(idsOf([0, 0, 0, 0], { topP: 0.5 })).toEqual([0, 1]);
    expect(idsOf([0, 0, 0, 0], { topP: 0.51 })).toEqual([0, 1, 2]);
    expect(idsOf(logs(0.1, 0.6, 0.3), { topP: 0 })).toEqual([1]);
    expect(idsOf(logs(0.1, 0.6, 0.3), { topP: 0.7 })).toEqual([1, 2]);
  });

  test('typical-p keeps what is nearest to the entropy', () => {
    // The entropy is 1.28: 0.3 has a surprise of 1.20, 0.2 of 1.61, 0.4 of 0.92 and 0.1 of 2.30.
    expect(idsOf(logs(0.4, 0.3, 0.2, 0.1), { typicalP: 0.2 })).toEqual([1]);
    expect(idsOf(logs(0.4, 0.3, 0.2, 0.1), { typicalP: 0.45 })).toEqual([1, 2]);
    expect(idsOf(logs(0.4, 0.3, 0.2, 0.1), { typicalP: 0.6 })).toEqual([0, 1, 2]);
    expect(idsOf([0, -800, 0], { typicalP: 0.9 })).toEqual([0, 2]);
  });
});

describe('shaping', () => {
  test('penalties divide what is positive and multiply what is not, within the window', () => {
    const after = (params: GenerateParams, history: number[]) => remaining([2, -2, 0, 1], params, history).map(([, value]) => value); // prettier-ignore
    expect(after({ repetitionPenalty: 2 }, [0, 1, 2, 0])).toEqual([1, -4, 0, 1]);
    expect(after({ presencePenalty: 0.5 }, [0, 1, 0])).toEqual([1.5, -2.5, 0, 1]);
    expect(after({ frequencyPenalty: 0.5 }, [0, 1, 0])).toEqual([1, -2.5, 0, 1]);
    expect(after({ presencePenalty: 1, penaltyWindow: 2 }, [0, 1, 3])).toEqual([2, -3, 0, 0]);
    expect(after({ presencePenalty: 1, penaltyWindow: 9 }, [0, 1])).toEqual([1, -3, 0, 1]);
    expect(after({ presencePenalty: 1, penaltyWindow: -1 }, [0, 1])).toEqual([1, -3, 0, 1]);
    expect(after({ presencePenalty: 1, penaltyWindow: 0 }, [0, 1])).toEqual([2, -2, 0, 1]);
    expect(() => after({ presencePenalty: 1 }, [0, 4])).toThrow('history has token 4 at 1, but the vocabulary has 4');
    expect(() => after({ presencePenalty: 1 }, [-1])).toThrow('history has token -1 at 0');
    expect(() => after({ presencePenalty: 1 }, [NaN])).toThrow('history has token NaN at 0');
  });

  test('a bias names tokens of the vocabulary, and ends are banned before the minimum length', () => {
    expect(remaining([1, 2], { logitBias: { 0: 3, 1: -100 } })).toEqual([[0, 4], [1, -98]]); // prettier-ignore
    expect(() => remaining([1, 2], { logitBias: { 2: 3 } })).toThrow(
      'logit bias for token 2, but the vocabulary has 2',
    );
    const endBan = { ids: [1], length: 2 };
    expect([idsOf([1, 2], {}, [], endBan), idsOf([1, 2], {}, [0], endBan), idsOf([1, 2], {}, [0, 0], endBan)]).toEqual([[0], [0], [0, 1]]); // prettier-ignore
  });

  test('only steps with an effect run, and only shaping when greedy', () => {
    const names = (params: GenerateParams, endBan?: SamplingParams['endBan']): string[] =>
      createChain(paramsOf(params, endBan)).map(({ name }) => name);
    expect(names({})).toEqual([]);
    const all: GenerateParams = {
      logitBias: { 1: 1 },
      presencePenalty: 1,
      topK: 1,
      topP: 0.9,
      minP: 0.1,
      typicalP: 0.9,
    };
    expect(names(all, { ids: [], length: 0 })).toEqual(['logit-bias', 'penalties', 'end-ban', 'top-k', 'typical-p', 'top-p', 'min-p']); // prettier-ignore
    expect(names({ ...all, temperature: 0 })).toEqual(['logit-bias', 'penalties']);
    expect([names({ repetitionPenalty: 1.1 }), names({ frequencyPenalty: 1 }), names({ presencePenalty: 1, penaltyWindow: 0 })]).toEqual([['penalties'], ['penalties'], []]); // prettier-ignore
  });
});

describe('candidates', () => {
  test('masked tokens are dropped, and what is not finite is an error', () => {
    const candidates = createCandidates(4);
    candidates.values.set([1, -Infinity, 2, -Infinity]);
    dropMasked(candidates);
    expect([[...candidates.ids.subarray(0, candidates.count)], candidates.count]).toEqual([[0, 2], 2]);
    for (const bad of [Infinity, NaN]) {
      candidates.count = 2;
      candidates.values.set([0, bad]);
      expect(() => dropMasked(candidates)).toThrow(`logit of token 1 became ${bad}`);
    }
  });

  test('the best is the lowest id among equals', () => {
    expect([argmax(Float32Array.of(1, 3, 3), 3), argmax(Float32Array.of(3, 3), 2), argmax(Float32Array.of(1, 2, 3), 2)]).toEqual([1, 0, 1]); // prettier-ignore
    const candidates = createCandidates(4);
    candidates.values.set([2, 1, 2, 3]);
    candidates.ids.set([0, 1, 2, 3]);
    expect(fillWeights(candidates, 2)).toBeCloseTo(1 + 2 * Math.exp(-0.5) + Math.exp(-1), 12);
    keepThrough(candidates, 0);
    expect([...candidates.ids.subarray(0, candidates.count)]).toEqual([0, 3]);
    const keys = Float64Array.of(1, 2, 2);
    expect([ranksBefore(keys, 1, 0), ranksBefore(keys, 1, 2), ranksBefore(keys, 2, 1), ranksBefore(keys, 1, 1)]).toEqual([true, true, false, false]); // prettier-ignore
  });

  test('the heap of the best has the worst of them on top, for every k', () => {
    const keys = Float32Array.from({ length: 40 }, (_, i) => (i * 17) % 23);
    const sorted = Array.from(keys.keys()).sort((a, b) => keys[b]! - keys[a]! || a - b);
    for (let k = 1; k <= keys.length; k++) {
      const heap = new Int32Array(keys.length);
      selectTopK(keys, keys.length, k, heap);
      expect(heap[0]).toBe(sorted[k - 1]);
      expect([...heap.subarray(0, k)].sort()).toEqual(sorted.slice(0, k).sort());
    }
  });

  test('the cut of a mass is where a full sort has it, near and far from the best key', () => {
    const keys = Float64Array.from({ length: 60 }, (_, i) => -((i * 37) % 60) / 3);
    keys.set([-15.99, -16, -16.01, -20, -50], 10);
    const weights = Float64Array.from(keys, (_, i) => 1 + (i % 4));
    const sorted = Array.from(keys.keys()).sort((a, b) => keys[b]! - keys[a]! || a - b);
    let sum = 0;
    for (const position of sorted) {
      expect(findMassCut(keys, weights, 60, sum + 0.5, new Int32Array(60))).toBe(position);
      sum += weights[position]!;
      expect(findMassCut(keys, weights, 60, sum, new Int32Array(60))).toBe(position);
    }
    expect(findMassCut(keys, weights, 60, sum + 0.5, new Int32Array(60))).toBe(-1);
  });
});

describe('logits', () => {
  test('sampling is possible with a finite logit and without NaN and +Infinity', () => {
    const check =
      (...logits: number[]) =>
      (): void =>
        checkLogits(Float32Array.from(logits));
    for (const good of [[0], [1, -Infinity], [-Infinity, 5]]) expect(check(...good)).not.toThrow();
    expect(check()).toThrow('0 logits: 0 NaN, 0 +Infinity, 0 finite');
    expect(check(-Infinity, -Infinity)).toThrow('2 logits: 0 NaN, 0 +Infinity, 0 finite');
    expect(check(1, NaN, Infinity, NaN, -Infinity)).toThrow('5 logits: 2 NaN, 1 +Infinity, first at 1, 1 finite');
    expect(check(Infinity)).toThrow(
      expect.objectContaining({ code: 'bad_logits', data: { numLogits: 1, numNaN: 0, numInfinite: 1, numFinite: 0, firstBadIndex: 0 } }),
    ); // prettier-ignore
  });

  test('log-probabilities of the likeliest tokens, without masked ones', () => {
    const logits = Float32Array.of(0, Math.log(3), -Infinity, 0);
    const normalizer = logSumExp(logits);
    expect(normalizer).toBeCloseTo(Math.log(5), 6);
    const top = (count: number) => topLogprobs(logits, normalizer, count).map(({ tokenId, logprob }) => [tokenId, Math.exp(logprob).toFixed(4)]); // prettier-ignore
    expect([top(0), top(1), top(9)]).toEqual([[], [[1, '0.6000']], [[1, '0.6000'], [0, '0.2000'], [3, '0.2000']]]); // prettier-ignore
    const given = { ids: Int32Array.of(1, 0, 2), values: Float32Array.of(2, 1, -Infinity) } as TopLogits;
    expect(firstLogprobs(given, 1, 1)).toEqual([{ tokenId: 1, logprob: 1 }]);
    expect(firstLogprobs(given, 1, 9)).toHaveLength(2);
  });
});

describe('the top of a row', () => {
  const count = (params: GenerateParams, endBan?: SamplingParams['endBan']): number => {
    const all = paramsOf(params, endBan);
    return countCandidates(all, createChain(all));
  };

  test('asks for as many tokens as decide', () => {
    expect([count({}), count({ topLogprobs: 0 }), count({ topLogprobs: 5 })]).toEqual([0, 1, 5]);
    const greedy: GenerateParams = { temperature: 0 };
    expect([count(greedy), count({ ...greedy, topLogprobs: 5 }), count({ ...greedy, presencePenalty: 1 })]).toEqual([1, 5, 65]); // prettier-ignore
    expect([count({ topK: 1 }), count({ topK: 200, presencePenalty: 1 }), count({ topK: 256 }), count({ topK: 257 })]).toEqual([1, 256, 256, 0]); // prettier-ignore
    expect([count({ topK: 3, topLogprobs: 9 }), count({ topK: 300, topLogprobs: 9 })]).toEqual([9, 9]);
    expect([count({ topP: 0.9 }), count({ minP: 0.1 }), count({ topP: 0.9, typicalP: 0.9 })]).toEqual([256, 256, 0]);
  });

  const top = (entries: [number, number][], more: Partial<TopLogits> = {}): TopLogits => ({
    ids: Int32Array.from(entries, ([id]) => id),
    values: Float32Array.from(entries, ([, value]) => value),
    max: entries[0]![1],
    sumExp: 10,
    numBad: 0,
    ...more,
  });
  const changed = (...entries: [id: number, before: number, after: number][]) =>
    new Map(entries.map(([id, before, after]) => [id, { before, after }]));
  const listed = (ranking: ReturnType<typeof rank>) =>
    ranking && Array.from(ranking.ids.subarray(0, ranking.count), (id, i) => [id, ranking.values[i]]);

  test('merges changed logits where they certainly belong', () => {
    const given = top([[5, 4], [2, 3], [7, 2]]); // prettier-ignore
    expect(listed(rank(given, 10, new Map()))).toEqual([[5, 4], [2, 3], [7, 2]]); // prettier-ignore
    expect(listed(rank(given, 10, changed([5, 4, 2.5], [9, 0, 3])))).toEqual([[2, 3], [9, 3], [5, 2.5], [7, 2]]); // prettier-ignore
    expect(listed(rank(given, 10, changed([5, 4, 1])))).toEqual([[2, 3], [7, 2]]); // prettier-ignore
    expect(listed(rank(given, 3, changed([5, 4, 1])))).toEqual([[2, 3], [7, 2], [5, 1]]); // prettier-ignore
    expect(listed(rank(given, 10, changed([6, 0, 2], [8, 0, 2])))).toEqual([[5, 4], [2, 3], [6, 2], [7, 2]]); // prettier-ignore
    expect(listed(rank(given, 10, changed([7, 2, 2])))).toEqual([[5, 4], [2, 3], [7, 2]]); // prettier-ignore
    expect(listed(rank(given, 10, changed([5, 4, -Infinity])))).toEqual([[2, 3], [7, 2]]); // prettier-ignore
    expect(rank(given, 10, changed([5, 4, Infinity]))).toBeNull();
    expect(rank(given, 10, changed([5, 4, NaN]))).toBeNull();
    expect(rank(given, 10, changed([5, 4, 0], [2, 3, 0], [7, 2, 0]))).toBeNull();
    const masked = rank(top([[5, 4], [2, -Infinity]]), 10, new Map())!; // prettier-ignore
    expect([listed(masked), masked.isWhole, rank(given, 10, new Map())!.isWhole, rank(given, 3, new Map())!.isWhole]).toEqual([[[5, 4]], true, false, true]); // prettier-ignore
  });

  test('the sum follows the changes, relative to the best that remains', () => {
    const { sumExp, error } = rank(top([[5, 4], [2, 3]]), 10, changed([5, 4, 2]))!; // prettier-ignore
    expect(sumExp).toBeCloseTo((10 - 1 + Math.exp(-2)) * Math.E, 10);
    expect(error).toBeGreaterThan(0);
    expect(error).toBeLessThan(sumExp);
  });
});

test('a draw takes the token in whose share of the weights the random number falls', () => {
  const sample = (logits: number[], uniform: number, params: GenerateParams = {}): number =>
    createSampler(paramsOf(params), { ...createRandom(1), next: () => uniform }).sample(Float32Array.from(logits), []).tokenId; // prettier-ignore
  const quarter = [0, 0, -Infinity, 0, 0];
  expect([0, 0.2499, 0.25, 0.4999, 0.5, 0.75, 0.999999].map((uniform) => sample(quarter, uniform))).toEqual([0, 0, 1, 1, 3, 4, 4]); // prettier-ignore
  expect([sample([-900, 0], 0), sample([0, -900], 0.999999999), sample([0, -900, 0], 0.5)]).toEqual([1, 0, 2]);
  expect([sample([1, 2], 0.99, { temperature: 0 }), sample([2, 2], 0.99, { temperature: 0 })]).toEqual([1, 0]);
  // exp(-1) against 1 at temperature 1; nearly equal at 100.
  expect([sample([0, 1], 0.268), sample([0, 1], 0.269), sample([0, 1], 0.497, { temperature: 100 })]).toEqual([
    0, 1, 0,
  ]);
});

describe('parameters', () => {
  const RANGES: [keyof GenerateParams, least: number, most: number, tooSmall: number, tooLarge: number][] = [
    ['maxTokens', 1, 2_147_483_647, 0, 2_147_483_648],
    ['temperature', 0, 100, -0.1, 100.1],
    ['topP', 0, 1, -0.1, 1.1],
    ['topK', 0, 2_147_483_647, -1, 2_147_483_648],
    ['minP', 0, 1, -0.1, 1.1],
    ['typicalP', 0, 1, -0.1, 1.1],
    ['repetitionPenalty', 0.01, 10, 0.009, 10.1],
    ['presencePenalty', -2, 2, -2.1, 2.1],
    ['frequencyPenalty', -2, 2, -2.1, 2.1],
    ['penaltyWindow', -1, 2_147_483_647, -2, 2_147_483_648],
    ['seed', 0, Number.MAX_SAFE_INTEGER, -1, 2 ** 53],
    ['minTokens', 0, 2_147_483_647, -1, 2_147_483_648],
    ['topLogprobs', 0, 20, -1, 21],
  ];
  test.each(RANGES)('%s is from %d to %d', (name, least, most, tooSmall, tooLarge) => {
    for (const value of [least, most]) expect(resolveGenerateParams({ [name]: value })[name]).toBe(value);
    for (const value of [tooSmall, tooLarge, NaN]) {
      expect(() => resolveGenerateParams({ [name]: value })).toThrow(
        expect.objectContaining({ code: 'invalid_option' }),
      );
    }
  });

  test('has defaults', () => {
    expect(resolveGenerateParams()).toEqual({
      maxTokens: 256, temperature: 0.7, topP: 1, topK: 0, minP: 0.05, typicalP: 1, repetitionPenalty: 1, presencePenalty: 0, frequencyPenalty: 0,
      penaltyWindow: 64, logitBias: new Map(), seed: null, stop: [], stopTokenIds: [], minTokens: 0, topLogprobs: null, ignoreEos: false,
    }); // prettier-ignore
    expect([samplingOf({}), samplingOf({ temperature: 0, topP: 0 }, DEFAULT_SAMPLING)]).toEqual([{ temperature: 0.7, topP: 1 }, { temperature: 0, topP: 0 }]); // prettier-ignore
  });

  test('a bias has token ids and numbers from -100 to 100', () => {
    const read = (logitBias: unknown) => [...resolveGenerateParams({ logitBias } as GenerateParams).logitBias];
    expect(read({ 0: -100, 2147483647: 100 })).toEqual([[0, -100], [2147483647, 100]]); // prettier-ignore
    expect(read(new Map([[5, 1]]))).toEqual([[5, 1]]);
    for (const key of ['-1', '2147483648', '1.5', 'a', '', '01234567890']) expect(() => read({ [key]: 1 })).toThrow('has a key that is not a token id'); // prettier-ignore
    for (const bias of [101, -101, NaN, '1', null]) expect(() => read({ 1: bias })).toThrow('of token 1 must be a number from -100 to 100'); // prettier-ignore
    for (const value of [null, [], 5, 'a']) expect(() => read(value)).toThrow('must be an object or a Map from token id to number'); // prettier-ignore
    const many = (size: number) => new Map(Array.from({ length: size }, (_, i) => [i, 1]));
    expect(read(many(4096))).toHaveLength(4096);
    expect(() => read(many(4097))).toThrow('has 4097 entries, the limit is 4096');
    expect(() => read(Object.fromEntries(many(4097)))).toThrow('has 4097 entries');
  });

  test('at most 64 stop tokens', () => {
    const read = (stopTokenIds: unknown) => resolveGenerateParams({ stopTokenIds } as GenerateParams).stopTokenIds;
    expect([read([0, 2147483647]), read(Array<number>(64).fill(1))]).toEqual([
      [0, 2147483647],
      Array<number>(64).fill(1),
    ]);
    for (const bad of [[-1], [2147483648], [1.5], ['1'], null, 'a', Array<number>(65).fill(1)]) expect(() => read(bad)).toThrow('must be a list of at most 64 token ids'); // prettier-ignore
  });
});

test('a stop string ends the text where it begins, the longest of those that begin there', () => {
  const read = (stops: string[], ...parts: string[]) => {
    const matcher = createStopMatcher(stops);
    return [...parts.map((part) => matcher.push(part)), matcher.flush()].map(({ emit, stopped, stopString }) => [emit, stopped, stopString ?? null]); // prettier-ignore
  };
  expect(read(['abc', 'b'], 'xa', 'b', 'd')).toEqual([['x', false, null], ['', false, null], ['a', true, 'b'], ['', true, null]]); // prettier-ignore
  expect(read(['ab', 'abc'], 'xab', 'c', 'd')).toEqual([['x', false, null], ['', true, 'abc'], ['', true, null], ['', true, null]]); // prettier-ignore
  expect(read(['ab', 'abc'], 'xab')).toEqual([
    ['x', false, null],
    ['', true, 'ab'],
  ]);
  expect(read(['abc'], 'ab')).toEqual([
    ['', false, null],
    ['ab', false, null],
  ]);
  expect(read(['', 'z'], 'ab')).toEqual([
    ['ab', false, null],
    ['', false, null],
  ]);
});
