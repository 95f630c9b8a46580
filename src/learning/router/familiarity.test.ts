import { expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { createConstant } from './baselines/constant.ts';
import { createPolicy } from './decision-rule.ts';
import { fitFamiliarity, nearestSimilarity } from './familiarity.ts';
import { createRouter, loadRouter, saveRouter } from './stored-router.ts';
import { candidate, FREE, learnable, sha256 } from './test-examples.contract.ts';

const { encoder, examples } = learnable(300, 5);
/** Around the first axis. */
const vectors = (count: number, axis: number, seed: number): Float32Array[] => {
  const random = createRandom(seed);
  return Array.from({ length: count }, () => {
    const raw = Float32Array.from({ length: 6 }, (_, i) => (i === axis ? 2 : random.next() - 0.5));
    return raw.map((value) => value / Math.hypot(...raw));
  });
};
const rated = vectors(300, 0, 1).map((vector, i) => ({ ...examples[i]!, input: { ...examples[i]!.input, vector } }));
const familiarity = fitFamiliarity(rated, 1)!;
const rule = { candidates: [candidate('small'), candidate('large')], weights: FREE, shrinkage: null, platt: null, safeDefault: 0, minConfidence: 0, familiarity }; // prettier-ignore
const always = createConstant('always large', 1, 2);

test('[R22] 95 % of requests like the rated ones are familiar, and those along another axis are not', () => {
  const isFamiliar = (vector: Float32Array): boolean =>
    nearestSimilarity(familiarity, vector) >= familiarity.minSimilarity;
  const share = vectors(400, 0, 2).filter(isFamiliar).length / 400;
  expect(share).toBeGreaterThan(0.9);
  expect(share).toBeLessThan(1);
  expect(vectors(100, 1, 3).filter(isFamiliar)).toEqual([]);
});

test('[R22] the safe default answers an unfamiliar request, and the reason has both similarities', () => {
  const policy = createPolicy(always, rule);
  const { input } = examples[0]!;
  expect(policy.decide({ ...input, vector: vectors(1, 0, 4)[0]! }).candidate).toBe(1);
  const decision = policy.decide({ ...input, vector: vectors(1, 1, 5)[0]! });
  expect(decision).toMatchObject({ candidate: 0, why: { kind: 'unfamiliar' } });
  expect(decision.why.detail).toMatch(/nearest has a similarity of 0\.\d\d, familiar ones have 0\.\d\d or more/);
  expect(policy.decide(input).candidate).toBe(1); // without a vector, there is nothing to compare
});

test('[R22] is stored with the router, and refused if its rows are broken', () => {
  const text = saveRouter(createRouter(encoder, always, rule), sha256);
  const loaded = loadRouter(text, sha256);
  expect(loaded.rule.familiarity).toEqual(familiarity);
  const broken = { ...familiarity, rows: familiarity.rows.with(3, NaN) };
  const bad = saveRouter(createRouter(encoder, always, { ...rule, familiarity: broken }), sha256);
  expect(() => loadRouter(bad, sha256)).toThrow(/familiarity has 1800 values for rows of 6/);
});

test('[R22] one conversation cannot be calibrated on', () => {
  expect(fitFamiliarity(rated.map((one) => ({ ...one, group: 'one' })), 1)).toBeNull(); // prettier-ignore
  expect(fitFamiliarity(examples, 1)).toBeNull();
});
