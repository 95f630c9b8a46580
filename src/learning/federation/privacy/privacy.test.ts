import { createCipheriv } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RatedRoute } from '../../router-training/rated-routes.ts';
import type { BundleContents } from '../contents.ts';
import { createTestNode } from '../harness.contract.ts';
import { epsilonOf, rhoFor } from './accounting.ts';
import { discreteGaussian } from './discrete-gaussian.ts';
import { fromNoisedSums, rhoOf, toPrivateEvidence, varianceFor } from './private-routes.ts';
import { createRandomIntegers, type FillRandom } from './random-integers.ts';
import { SENSITIVITY, sumRatings } from './rating-sums.ts';

const BUDGET = { epsilon: 2, delta: 1e-5, epsilonPerPush: 1 };

/** The same bytes for a seed; products take theirs from cryptography. */
function seededFill(seed: number): FillRandom {
  const key = Buffer.alloc(16);
  key.writeDoubleLE(seed);
  const stream = createCipheriv('aes-128-ctr', key, Buffer.alloc(16));
  return (bytes) => bytes.set(stream.update(new Uint8Array(bytes.length)));
}

const rated = fc.record({
  request: fc.record({ turns: fc.array(fc.lorem({ maxCount: 30 }), { minLength: 1, maxLength: 2 }) }),
  candidate: fc.integer({ min: 0, max: 2 }),
  quality: fc.double({ min: 0, max: 1, noNaN: true }),
  propensity: fc.constant(null),
});
const conversation = fc.array(rated, { minLength: 1, maxLength: 12 });
const inGroup = (all: readonly Omit<RatedRoute, 'group'>[], group: string): RatedRoute[] => all.map((one) => ({ ...one, group })); // prettier-ignore

describe('sums of ratings', () => {
  test('[FD18] one conversation more or less moves them by the sensitivity at most, in whole numbers', () => {
    let largest = 0;
    fc.assert(
      fc.property(fc.array(conversation, { maxLength: 4 }), conversation, fc.nat(4), (others, one, at) => {
        const without = others.map((all, i) => inGroup(all, `other-${i}`));
        const together = [...without.slice(0, at), inGroup(one, 'one'), ...without.slice(at)];
        const [before, after] = [without, together].map((all) => sumRatings(all.flat(), 3));
        const difference = after!.map((value, i) => value - before![i]!);
        expect(difference.every(Number.isInteger)).toBe(true);
        const squared = difference.reduce((sum, value) => sum + value * value, 0);
        expect(squared).toBeLessThanOrEqual(SENSITIVITY ** 2);
        largest = Math.max(largest, Math.sqrt(squared));
      }),
      { numRuns: 500 },
    );
    // The bound is used: noise for ten times the effect would hide nothing better.
    expect(largest).toBeGreaterThan(0.9 * SENSITIVITY);
  });
});

describe('noise', () => {
  /** Chance of more than this, for 20 degrees of freedom: 1e-6. */
  const CHI_SQUARED_LIMIT = 68;

  test.each([3, 40, 1000])('[FD18] has the probabilities of the discrete Gaussian with variance %i', (variance) => {
    const random = createRandomIntegers(seededFill(variance));
    const numDraws = 40_000;
    const width = Math.max(1, Math.round(Math.sqrt(variance) / 4));
    // Cells around 0 of about a quarter of the standard deviation; the outer two have no end.
    const cellOf = (value: number): number => Math.max(-10, Math.min(10, Math.round(value / width)));
    const expected = new Map<number, number>();
    let total = 0;
    for (let value = -20_000; value <= 20_000; value++) {
      const weight = Math.exp(-(value ** 2) / (2 * variance));
      total += weight;
      expected.set(cellOf(value), (expected.get(cellOf(value)) ?? 0) + weight);
    }
    const drawn = new Map<number, number>();
    for (let i = 0; i < numDraws; i++) {
      const value = discreteGaussian(variance, random);
      drawn.set(cellOf(value), (drawn.get(cellOf(value)) ?? 0) + 1);
    }
    let chiSquared = 0;
    for (const [cell, weight] of expected) {
      const mean = (numDraws * weight) / total;
      if (mean >= 5) chiSquared += ((drawn.get(cell) ?? 0) - mean) ** 2 / mean;
    }
    expect(chiSquared).toBeLessThan(CHI_SQUARED_LIMIT);
  });

  test('[FD18] spends at most the rho it was made for', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.01, max: 20, noNaN: true }),
        fc.double({ min: 1e-9, max: 1e-3, noNaN: true }),
        (epsilon, delta) => {
          expect(epsilonOf(rhoOf(varianceFor(rhoFor(epsilon, delta))), delta)).toBeLessThanOrEqual(epsilon);
        },
      ),
      { numRuns: 30 },
    );
    // Canonne, Kamath and Steinke: ε is at most ρ + √(4ρ·ln(1/δ)), and the exact Gaussian with σ = 1 has 4.377 at 1e-5.
    expect(epsilonOf(0.5, 1e-5)).toBeLessThan(0.5 + Math.sqrt(2 * Math.log(1e5)));
    expect(epsilonOf(0.5, 1e-5)).toBeGreaterThan(4.377);
  });
});

describe('an attacker who knows all conversations but one', () => {
  const TARGET = inGroup([{ request: { turns: ['zebra quagga okapi tapir'] }, candidate: 1, quality: 1, propensity: null }], 'target'); // prettier-ignore
  const OTHERS = Array.from({ length: 20 }, (_, i) => inGroup([{ request: { turns: [`daily letters about garden number ${i}`] }, candidate: i % 2, quality: i % 3 === 0 ? 1 : 0, propensity: null }], `other-${i}`)).flat(); // prettier-ignore
  const NUM_RUNS = 100;

  const bucketsOf = (terms: string): number[] => [...new Uint16Array(new Uint8Array(Buffer.from(terms, 'base64')).buffer)].filter((_, i) => i % 2 === 0); // prettier-ignore
  const targets = new Set(fromNoisedSums(sumRatings(TARGET, 2), ['a', 'b'], 0, createRandomIntegers(seededFill(1))).examples.flatMap(({ terms }) => bucketsOf(terms))); // prettier-ignore

  /** Good ratings of the target's candidate in the bundle, and words of the target in them. Variance 0: without noise. */
  async function scoreOf(examples: readonly RatedRoute[], variance: number, seed: number): Promise<number> {
    const random = createRandomIntegers(seededFill(seed));
    const { examples: shared } = await (variance === 0
      ? fromNoisedSums(sumRatings(examples, 2), ['a', 'b'], 0, random)
      : toPrivateEvidence(examples, ['a', 'b'], variance, random));
    const ofCandidate = shared.filter(({ candidate, quality }) => candidate === 1 && quality === 1);
    return ofCandidate.reduce((sum, { terms }) => sum + 1 + 10 * bucketsOf(terms).filter((bucket) => targets.has(bucket)).length, 0); // prettier-ignore
  }

  async function areaUnderCurve(variance: number): Promise<number> {
    const [ins, outs]: number[][] = [[], []];
    for (let seed = 1; seed <= NUM_RUNS; seed++) {
      ins!.push(await scoreOf([...OTHERS, ...TARGET], variance, seed));
      outs!.push(await scoreOf(OTHERS, variance, seed + 10_000));
    }
    let sum = 0;
    for (const one of ins!) for (const other of outs!) sum += one > other ? 1 : one === other ? 0.5 : 0;
    return sum / NUM_RUNS ** 2;
  }

  test('[FD18] guesses better than chance by no more than epsilon allows, and is right without noise', async () => {
    expect(await areaUnderCurve(0)).toBe(1);
    const variance = varianceFor(rhoFor(1, 1e-5));
    // The best attack on the sums has Φ(μ/√2) with μ = sensitivity/σ: 0.58 here. Four standard errors of 100 runs are 0.16.
    expect(await areaUnderCurve(variance)).toBeLessThan(0.74);
    // With little noise, the attack works again: it is not blind.
    expect(await areaUnderCurve(varianceFor(rhoFor(60, 1e-5)))).toBeGreaterThan(0.85);
  }, 120_000);
});

describe('bundles with a privacy budget', () => {
  async function createNode() {
    const node = createTestNode();
    await node.collect(24, 5);
    return node;
  }

  test('[FD19] have ratings made of noised sums, and nothing of patterns, vectors or texts', async () => {
    const node = await createNode();
    await node.addPattern([1, 0, 0], 0.9);
    await node.federation.setPrivacy('acme', BUDGET);
    const { contents } = await node.federation.push('acme');
    const { routes, ...others } = JSON.parse(contents) as BundleContents;
    expect(others).toEqual({});
    expect(routes!.space).toBeNull();
    expect(routes!.examples.every(({ vector, turns, propensity }) => vector === null && turns === undefined && propensity === null)).toBe(true); // prettier-ignore
    expect(new Set(routes!.examples.map(({ query, numTokens }) => `${query} ${numTokens}`)).size).toBeLessThanOrEqual(
      1,
    );
    const peer = await createNode();
    await peer.federation.addPeer('acme', { key: node.signer.publicKey(), name: 'berlin' });
    const bundle = await node.federation.push('acme');
    expect(await peer.federation.pull('acme', bundle)).toMatchObject({ peer: 'berlin', numPatterns: 0 });
  });

  test('[FD19] of a tenant without ratings are sent, too: a refusal would tell that there are none', async () => {
    const node = createTestNode();
    await node.federation.setPrivacy('acme', BUDGET);
    const { contents } = await node.federation.push('acme');
    expect(JSON.parse(contents)).toHaveProperty('routes');
    await expect(node.federation.push('other')).rejects.toMatchObject({ code: 'not_found' });
  });

  test.each([{ texts: true }, { patterns: true }, { terms: false }, { adapters: [{} as never] }])(
    '[FD19] refuse %j, and spend nothing',
    async (options) => {
      const node = await createNode();
      await node.federation.setPrivacy('acme', BUDGET);
      await expect(node.federation.push('acme', options)).rejects.toMatchObject({ code: 'invalid_option' });
      expect((await node.federation.status('acme')).privacy).toMatchObject({ spent: 0, numPushes: 0 });
    },
  );

  test('[FD20] spend the budget of the tenant, and are refused with the numbers when it is spent', async () => {
    const node = await createNode();
    const { federation } = node;
    await federation.push('acme');
    await federation.setPrivacy('acme', BUDGET);
    const spent: number[] = [];
    let refusal: unknown;
    for (let i = 0; i < 20; i++) {
      refusal = await federation.push('acme').then(
        () => null,
        (error: unknown) => error,
      );
      if (refusal !== null) break;
      spent.push((await federation.status('acme')).privacy!.spent);
    }
    expect(spent[0]).toBeGreaterThan(0.99);
    expect(spent[0]).toBeLessThanOrEqual(1);
    // Rényi composition: more pushes than the two of adding ε up.
    expect(spent.length).toBeGreaterThan(2);
    expect(spent).toEqual(spent.toSorted((a, b) => a - b));
    expect(spent.at(-1)).toBeLessThanOrEqual(2);
    expect(refusal).toMatchObject({ code: 'limit_exceeded', data: { epsilon: 2, spent: spent.at(-1), numPushes: spent.length } }); // prettier-ignore
    expect((refusal as Error).message).toMatch(
      /epsilon of 2 at a delta of 0.00001; \d bundles spent 1\.\d+, and one more makes 2\.\d+/,
    );
    const status = (await federation.status('acme')).privacy!;
    expect(status).toMatchObject({ numPushes: spent.length, numPlain: 1 });
    expect(status.spentBasic).toBeCloseTo(spent[0]! * spent.length, 6);
    expect(status.left).toBeCloseTo(2 - spent.at(-1)!, 9);
    // Ending the budget and starting another one forgets nothing.
    await federation.setPrivacy('acme', null);
    await federation.setPrivacy('acme', BUDGET);
    await expect(federation.push('acme')).rejects.toMatchObject({ code: 'limit_exceeded' });
    expect((await federation.status('other')).privacy).toBeNull();
  });

  test('[FD20] charge before the noise is drawn: a crash in between loses budget and never spends more', async () => {
    const node = createTestNode(() => {
      throw new Error('the process ended');
    });
    await node.federation.setPrivacy('acme', BUDGET);
    await expect(node.federation.push('acme')).rejects.toThrow('the process ended');
    const { privacy, sent } = await node.federation.status('acme');
    expect(privacy).toMatchObject({ numPushes: 1, numPlain: 0 });
    expect(privacy!.spent).toBeGreaterThan(0.99);
    expect(sent.numBundles).toBe(0);
  });

  test('[FD20] pushes at the same time spend as often as there are bundles', async () => {
    const { federation } = await createNode();
    await federation.setPrivacy('acme', { ...BUDGET, epsilonPerPush: 0.5 });
    const results = await Promise.allSettled(Array.from({ length: 4 }, () => federation.push('acme')));
    const numSent = results.filter(({ status }) => status === 'fulfilled').length;
    expect(numSent).toBeGreaterThan(0);
    expect((await federation.status('acme')).privacy).toMatchObject({ numPushes: numSent, numPlain: 0 });
  });

  test.each([
    { epsilon: 0 },
    { epsilon: 1e9 },
    { epsilon: NaN },
    { epsilon: 1, delta: 0 },
    { epsilon: 1, delta: 0.5 },
    { epsilon: 1, epsilonPerPush: 2 },
  ])('[FD20] refuse the budget %j', async (budget) => {
    const { federation } = createTestNode();
    await expect(federation.setPrivacy('acme', budget)).rejects.toMatchObject({ code: 'invalid_option' });
    expect((await federation.status('acme')).privacy).toBeNull();
  });
});
