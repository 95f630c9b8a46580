import { expect, test } from 'vitest';
import { createConstant } from './baselines/constant.ts';
import { trainLinear } from './baselines/linear.ts';
import { trainRidge } from './baselines/ridge.ts';
import { createPolicy } from './decision-rule.ts';
import { checkFeedback, createExplorer } from './exploration.ts';
import { candidate, FREE, learnable } from './test-examples.contract.ts';

const { examples } = learnable(100, 9);
const candidates = [candidate('a'), candidate('b')];
const rule = { candidates, weights: FREE, shrinkage: null, platt: null, safeDefault: -1, minConfidence: 0 };
const input = examples[0]!.input;

test('[R16] exploring stops when its budget is spent, and says with what probability it drew', () => {
  const estimate = { qualities: Float64Array.of(0.5, 0.4), confidence: 1, why: { kind: 'best', detail: '' } } as const;
  const policy = createPolicy({ ...createConstant('c', 0, 2), estimate: () => estimate }, rule);
  const explorer = createExplorer(policy, 2, { regretBudget: 1, deviation: 0.3, seed: 2 });
  const decisions = Array.from({ length: 400 }, () => explorer.decide(input));
  const explored = decisions.filter(({ why }) => why.kind === 'explored');
  expect(explored).toHaveLength(10); // each loses 0.1 of 1
  expect(explorer.regretSpent).toBeCloseTo(1, 9);
  for (const { propensity } of explored) expect(propensity > 0.1 && propensity < 0.7).toBe(true);
  expect(decisions.at(-1)).toMatchObject({ candidate: 0, propensity: 1 });
});

test('[R16] explores candidates with many outcomes less', () => {
  const policy = createPolicy(createConstant('c', 0, 2), rule);
  const count = (numKnown: number): number => {
    const explorer = createExplorer(policy, 2, { regretBudget: 1e6, deviation: 1, seed: 2 });
    for (let i = 0; i < numKnown; i++)
      for (const one of [0, 1]) explorer.update({ input, candidate: one, quality: 0.5, propensity: 1 });
    return Array.from({ length: 200 }, () => explorer.decide(input)).filter(({ candidate: one }) => one === 1).length;
  };
  expect(count(0)).toBeGreaterThan(20);
  expect(count(50)).toBe(0);
});

test.each([
  ['linear', () => trainLinear([], 2, 512)],
  ['ridge', () => trainRidge([], 2)],
] as const)('[R17] %s moves to what it hears good of, and back after bad news', (_, create) => {
  const policy = createPolicy(create(), rule);
  const share = (): number =>
    examples.slice(50).filter((example) => policy.decide(example.input).candidate === 1).length;
  const tell = (quality: number, times: number): void => {
    for (let i = 0; i < times; i++) {
      policy.update({ input: examples[i % 50]!.input, candidate: 1, quality, propensity: 1 });
      policy.update({ input: examples[i % 50]!.input, candidate: 0, quality: 0.5, propensity: 1 });
    }
  };
  tell(1, 100);
  expect(share()).toBe(50);
  tell(0, 200);
  expect(share()).toBe(0);
});

test('[R17] news about some requests says a little about a candidate on all others', () => {
  const linear = trainLinear([], 2, 512);
  const other = {
    ...input,
    query: new Float32Array(32),
    terms: { indices: new Int32Array(), values: new Float32Array() },
  };
  for (let i = 0; i < 20; i++) linear.update({ input: examples[i]!.input, candidate: 1, quality: 1, propensity: 1 });
  const { qualities } = linear.estimate(other);
  expect(qualities[0]).toBe(0.5);
  expect(qualities[1]).toBeGreaterThan(0.51);
});

test('rejects feedback with an invalid candidate, quality or propensity', () => {
  const good = { input, candidate: 1, quality: 1, propensity: 1 };
  expect(() => checkFeedback(good, 2)).not.toThrow();
  for (const bad of [{ candidate: 2 }, { candidate: -1 }, { quality: NaN }, { quality: 1.1 }, { propensity: 0 }])
    expect(() => checkFeedback({ ...good, ...bad }, 2)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
});
