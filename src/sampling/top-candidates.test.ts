import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { campaign } from '../../test/support/campaign.ts';
import { topOfRow } from '../../test/support/top-logits.ts';
import { createRandom } from '../core/random.ts';
import { TOP_SUM_TOLERANCE } from '../core/top-logits.ts';
import { type GenerateParams, resolveGenerateParams } from './generate-params.ts';
import { createSampler } from './sampler.ts';
import type { SampledToken, Sampler } from './types.ts';

function sampler(params: GenerateParams, seed = 1): Sampler {
  return createSampler(resolveGenerateParams(params), createRandom(seed));
}

/** The token, or the error. */
function outcome(sample: () => SampledToken): unknown {
  try {
    return sample();
  } catch (error) {
    const { code, message, data } = error as { code: string; message: string; data: unknown };
    return { code, message, data };
  }
}

const withoutLogprobs = (result: unknown): unknown => {
  const { tokenId, top } = result as SampledToken;
  return tokenId === undefined ? result : { tokenId, top: top.map((entry) => entry.tokenId) };
};

/** Typical rows and difficult ones: ties, masks, constant values, non-finite values. */
function makeRow(kind: number, size: number, seed: number): Float32Array {
  const random = createRandom(seed);
  const bell = (): number => random.next() + random.next() + random.next() + random.next() - 2;
  const kinds = [
    () => bell() * 4,
    () => bell() * 20,
    () => Math.round(bell() * 3),
    () => Math.round(bell() * 3) / 4,
    () => 1.5,
    () => (random.next() < 0.9 ? -Infinity : bell() * 5),
    () => (random.next() < 0.01 ? [NaN, Infinity, -Infinity][Math.floor(random.next() * 3)]! : bell()),
    () => (random.next() < 0.02 ? 9 + bell() : bell()),
    () => bell() * 1e38,
  ];
  return Float32Array.from({ length: size }, kinds[kind % kinds.length]);
}

const paramsArbitrary = fc.record<GenerateParams>(
  {
    temperature: fc.constantFrom(0, 0.3, 0.7, 1, 2.5),
    topP: fc.constantFrom(0, 0.1, 0.5, 0.9, 0.95, 0.999999, 1),
    topK: fc.constantFrom(0, 0, 1, 2, 5, 40, 250, 300),
    minP: fc.constantFrom(0, 0, 0.05, 0.5, 1),
    typicalP: fc.constantFrom(1, 1, 1, 0.8),
    repetitionPenalty: fc.constantFrom(1, 1.1, 3, 0.5, 10, 0.01),
    presencePenalty: fc.constantFrom(0, 0, 0.5, -1.5),
    frequencyPenalty: fc.constantFrom(0, 0, 0.25, -0.75),
    penaltyWindow: fc.constantFrom(-1, 0, 3, 64),
    logitBias: fc.dictionary(fc.nat(39).map(String), fc.constantFrom(-100, -3, -0.5, 0.5, 2, 100), { maxKeys: 6 }),
    topLogprobs: fc.constantFrom(null, 0, 3, 20),
  },
  { requiredKeys: [] },
);

describe('the top logits alone', () => {
  test('give the same tokens as the whole row for any parameters, row and sum error', () => {
    const property = fc.property(
      paramsArbitrary,
      fc.record({
        size: fc.constantFrom(1, 2, 40, 260, 700),
        kind: fc.nat(8),
        seed: fc.nat(),
        numMore: fc.constantFrom(0, 0, 3),
        error: fc.constantFrom(-0.9, 0, 0.9),
        history: fc.array(fc.nat(45), { maxLength: 80 }),
      }),
      (params, { size, kind, seed, numMore, error, history }) => {
        const whole = sampler(params, seed);
        const narrow = sampler(params, seed);
        const asked = narrow.numCandidates!;
        // One sampler draws three times: a missing or extra draw shows in the next.
        for (let step = 0; step < 3; step++) {
          const row = makeRow(kind, size, seed + step);
          const top = topOfRow(row, Math.min(size, asked + numMore), 1 + error * TOP_SUM_TOLERANCE);
          const expected = outcome(() => whole.sample(row, history));
          const actual = outcome(() => narrow.sample(row, history, top));
          expect(withoutLogprobs(actual)).toEqual(withoutLogprobs(expected));
          const [logprob, other] = [actual, expected].map((result) => (result as SampledToken).logprob ?? 0);
          if (params.topLogprobs != null && logprob !== other)
            expect(Math.abs(logprob! - other!)).toBeLessThan(2 * TOP_SUM_TOLERANCE);
        }
      },
    );
    fc.assert(property, { numRuns: campaign({ short: 1000, long: 20_000 }) });
  });

  const settled: GenerateParams[] = [
    { temperature: 0 },
    { temperature: 0, topLogprobs: 5 },
    { temperature: 0, repetitionPenalty: 1.3, logitBias: { 3: 50 } },
    {},
    { topK: 40 },
    { topK: 40, typicalP: 0.7, minP: 0.1, topLogprobs: 20 },
    { topP: 1, minP: 0.02 },
    { repetitionPenalty: 1.1, presencePenalty: 0.5, frequencyPenalty: 0.1 },
  ];
  test.each(settled)('are all that is read with %j, except tokens that parameters name', (params) => {
    for (let seed = 0; seed < 20; seed++) {
      const row = makeRow(7, 5000, seed);
      const history = [1, 2, 2, 900];
      const narrow = sampler(params, seed);
      const top = topOfRow(row, narrow.numCandidates!);
      const expected = sampler(params, seed).sample(row, history);
      const unread = new Float32Array(row.length).fill(NaN);
      for (const id of [...history, 3, expected.tokenId]) unread[id] = row[id]!;
      const actual = narrow.sample(unread, history, top);
      expect(actual.tokenId).toBe(expected.tokenId);
      expect(actual.top.map(({ tokenId }) => tokenId)).toEqual(expected.top.map(({ tokenId }) => tokenId));
    }
  });

  test("do not settle a nucleus whose edge is within the sum's error", () => {
    // Eight equal logits: half of the mass ends exactly after the fourth.
    const row = new Float32Array(1000).fill(-Infinity).fill(2, 10, 18);
    for (const sumFactor of [1 - TOP_SUM_TOLERANCE / 2, 1, 1 + TOP_SUM_TOLERANCE / 2]) {
      for (const [topP, numKept] of [
        [0.4999999, 4],
        [0.5, 4],
        [0.5000001, 5],
      ] as const) {
        const seen = new Set<number>();
        for (let seed = 0; seed < 200; seed++) {
          const top = topOfRow(row, 256, sumFactor);
          seen.add(sampler({ topP, temperature: 1 }, seed).sample(row, [], top).tokenId);
        }
        expect([...seen].sort((a, b) => a - b)).toEqual([10, 11, 12, 13, 14].slice(0, numKept));
      }
    }
  });

  test('are not requested where the whole row is needed, and change nothing if supplied', () => {
    const row = makeRow(0, 500, 1);
    for (const params of [{ minP: 0 }, { minP: 0, typicalP: 0.5 }, { minP: 0, topK: 300 }] satisfies GenerateParams[]) {
      const one = sampler(params);
      expect(one.numCandidates).toBe(0);
      expect(one.sample(row, [], topOfRow(row, 256)).tokenId).toBe(sampler(params).sample(row, []).tokenId);
    }
    expect(sampler({ minP: 0, typicalP: 0.5, topLogprobs: 7 }).numCandidates).toBe(7);
  });
});

test('[QE6] the log-probability of a token is known without asking for it where the kernel has summed the row', () => {
  const row = makeRow(0, 100, 3);
  const top = topOfRow(row, 40);
  for (const temperature of [0, 0.8]) {
    const [plain, asked] = [{}, { topLogprobs: 2 }].map((more) =>
      sampler({ temperature, ...more }).sample(row, [], top),
    );
    expect(plain!.logprob).toBeCloseTo(asked!.logprob!, 6);
    expect([plain!.tokenId, plain!.top]).toEqual([asked!.tokenId, []]);
    // A pass over the vocabulary for each token would cost as much as sampling.
    expect(sampler({ temperature }).sample(row, []).logprob).toBeNull();
  }
});
