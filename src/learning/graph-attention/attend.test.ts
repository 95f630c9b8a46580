import { describe, expect, test } from 'vitest';
import { attend, softplus } from './attend.ts';
import { attendBackward } from './attend-backward.ts';
import { DIM, randomExample, randomParameters } from './fixtures.contract.ts';
import { listLoss } from './list-loss.ts';
import {
  groupOf,
  initialParameters,
  LAYOUT,
  NUM_HEADS,
  NUM_PARAMETERS,
  queryDirections,
  type ParameterGroup,
} from './parameters.ts';
import { readRankList } from './rank-list.ts';
import { orderOf } from './ranking-metrics.ts';
import { createReranker, untrainedState } from './reranker.ts';
import { listGradient } from './train.ts';

const directions = queryDirections(3, DIM);
const listOf = (seed: number) => readRankList(randomExample(seed), directions);

describe('[GA1] the attention', () => {
  test('shares of a head sum to 1 over candidates with a vector', () => {
    const list = listOf(1);
    const { shares, logShares } = attend(randomParameters(2), list);
    for (let h = 0; h < NUM_HEADS; h++) {
      const own = [...shares.subarray(h * list.count, (h + 1) * list.count)];
      expect(own.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 12);
      expect(own[4]).toBe(0);
      expect(Number.isFinite(logShares[h * list.count + 4])).toBe(true);
    }
  });

  test('a share is exp(similarity + edges) × exp(-decay × hops)', () => {
    const parameters = initialParameters(1);
    groupOf(parameters, 'edgeBias').fill(0);
    groupOf(parameters, 'decay').fill(0.7);
    const example = randomExample(5);
    const list = readRankList(example, directions);
    const { shares } = attend(parameters, list);
    const raw = example.candidates.map(({ vector, similarity, hops }) =>
      vector === null ? 0 : Math.exp(5 * similarity!) * Math.exp(-softplus(Math.fround(0.7)) * hops),
    );
    const sum = raw.reduce((total, value) => total + value, 0);
    raw.forEach((value, i) => expect(shares[i]).toBeCloseTo(value / sum, 6));
  });

  test('a hop never makes a share larger', () => {
    const example = randomExample(6);
    const moved = { ...example, candidates: example.candidates.map((one, i) => ({ ...one, hops: i === 2 ? 5 : one.hops })) }; // prettier-ignore
    const parameters = randomParameters(7);
    groupOf(parameters, 'decay').set([-4, -1, 0, 3]);
    const [before, after] = [example, moved].map((one) => attend(parameters, readRankList(one, directions)));
    const count = example.candidates.length;
    for (let h = 0; h < NUM_HEADS; h++)
      expect(after!.shares[h * count + 2]).toBeLessThan(before!.shares[h * count + 2]!);
  });

  test('edges count by the nearness of their other end', () => {
    const parameters = initialParameters(1);
    groupOf(parameters, 'attention').fill(1);
    groupOf(parameters, 'relations').fill(1);
    groupOf(parameters, 'edgeBias').fill(0.1);
    const example = randomExample(8);
    const edge = { relation: 'cites', weight: 1, confidence: 1, ageMs: 0 };
    const order = orderOf(example.candidates.map(({ similarity, score }) => similarity ?? score));
    const subject = order[4]!;
    const scoreWith = (other: number | null): number => {
      const candidates = example.candidates.map((one, i) => ({ ...one, edges: i === subject && other !== null ? [{ ...edge, other }] : [] })); // prettier-ignore
      return attend(parameters, readRankList({ ...example, candidates }, directions)).scores[subject]!;
    };
    expect(scoreWith(order[0]!)).toBeGreaterThan(scoreWith(order[8]!));
    expect(scoreWith(order[8]!)).toBeGreaterThan(scoreWith(null));
  });

  test('ranks exactly like similarity before training', () => {
    const reranker = createReranker(untrainedState(DIM));
    for (let seed = 1; seed <= 50; seed++) {
      const example = randomExample(seed, 30);
      const plain = example.candidates.map(({ similarity, score }) => similarity ?? score);
      expect(orderOf(reranker.score(example))).toEqual(orderOf(plain));
    }
  });

  test('earlier lists leave no trace, whatever their length', () => {
    const state = { ...untrainedState(DIM), parameters: randomParameters(4) };
    const used = createReranker(state);
    for (const [seed, count] of [
      [1, 40],
      [2, 7],
      [3, 70],
      [4, 9],
    ] as const) {
      const example = randomExample(seed, count);
      expect(used.score(example)).toEqual(createReranker(state).score(example));
      expect(used.score(example)).toEqual(
        attend(state.parameters, readRankList(example, queryDirections(1, DIM))).scores,
      );
    }
  });

  test('scores an empty list and one without vectors', () => {
    const { query, candidates } = randomExample(1);
    const reranker = createReranker({ ...untrainedState(DIM), parameters: randomParameters(1) });
    expect([...reranker.score({ query, candidates: [] })]).toEqual([]);
    const bare = candidates.map((one) => ({ ...one, vector: null, similarity: null }));
    expect([...reranker.score({ query, candidates: bare })].every(Number.isFinite)).toBe(true);
  });
});

describe('[GA2] the gradient is the slope of the loss', () => {
  test.each(Object.keys(LAYOUT) as ParameterGroup[])('for each parameter of %s', (group) => {
    const parameters = randomParameters(11);
    const { used } = randomExample(12);
    const list = listOf(12);
    const gradient = new Float32Array(NUM_PARAMETERS);
    const loss = listGradient(parameters, { list, used }, gradient);
    const lossAt = (): number => listLoss(attend(parameters, list).scores, used).loss;
    expect(loss).toBe(lossAt());
    const { offset, length } = LAYOUT[group];
    let largest = 0;
    for (let i = offset; i < offset + length; i++) {
      const kept = parameters[i]!;
      parameters[i] = kept + 1e-3;
      const [high, above] = [parameters[i]!, lossAt()];
      parameters[i] = kept - 1e-3;
      const slope = (above - lossAt()) / (high - parameters[i]!);
      parameters[i] = kept;
      largest = Math.max(largest, Math.abs(slope));
      expect(Math.abs(gradient[i]! - slope), `${group} ${i - offset}`).toBeLessThan(
        2e-5 * Math.max(1, Math.abs(slope)),
      );
    }
    expect(largest).toBeGreaterThan(1e-4); // else nothing was compared
  });

  test('for score gradients that do not sum to 0', () => {
    const parameters = randomParameters(13);
    const list = listOf(14);
    const slopes = Float64Array.from({ length: list.count }, (_, i) => 0.2 + 0.1 * i);
    const gradient = new Float32Array(NUM_PARAMETERS);
    attendBackward(parameters, list, attend(parameters, list), slopes, gradient);
    const sumAt = (): number => attend(parameters, list).scores.reduce((sum, score, i) => sum + slopes[i]! * score, 0);
    for (let i = 0; i < NUM_PARAMETERS; i += i < LAYOUT.edgeQuery.offset || i >= LAYOUT.sharpness.offset ? 1 : 37) {
      const kept = parameters[i]!;
      parameters[i] = kept + 1e-3;
      const [high, above] = [parameters[i]!, sumAt()];
      parameters[i] = kept - 1e-3;
      const slope = (above - sumAt()) / (high - parameters[i]!);
      parameters[i] = kept;
      expect(Math.abs(gradient[i]! - slope), `parameter ${i}`).toBeLessThan(1e-4 * Math.max(1, Math.abs(slope)));
    }
  });
});

describe('[GA3] refuses bad input', () => {
  const example = randomExample(1);
  const edge = { relation: 'cites', other: 1, weight: 1, confidence: 1, ageMs: 0 };
  const first = (changes: object) => ({ ...example, candidates: [{ ...example.candidates[0]!, ...changes }, ...example.candidates.slice(1)] }); // prettier-ignore
  test.each([
    ['a query of another length', { ...example, query: new Float32Array(5) }, 'query of 5'],
    ['a query without direction', { ...example, query: new Float32Array(DIM) }, 'no direction'],
    ['a vector of another length', first({ vector: new Float32Array(3) }), 'candidate 0 has 3'],
    ['a similarity of no number', first({ similarity: NaN }), 'similarity NaN'],
    ['hops below 0', first({ hops: -1 }), '-1 hops'],
    ['an edge to nowhere', first({ edges: [{ ...edge, other: 9 }] }), 'edge to 9'],
    ['an edge to itself', first({ edges: [{ ...edge, other: 0 }] }), 'edge to 0'],
    ['an edge of no number', first({ edges: [{ ...edge, weight: NaN }] }), 'weight NaN'],
    ['a confidence over 1', first({ edges: [{ ...edge, confidence: 1.5 }] }), 'confidence 1.5'],
    ['too many', { ...example, candidates: Array.from({ length: 4097 }, () => example.candidates[0]!) }, '4097'],
  ])('%s', (_name, bad, message) => {
    const attempt = () => createReranker(untrainedState(DIM)).score(bad);
    expect(attempt).toThrow(expect.objectContaining({ code: 'invalid_option' }));
    expect(attempt).toThrow(message);
  });
});
