import { expect, test } from 'vitest';
import { createConstant } from './baselines/constant.ts';
import { trainLinear } from './baselines/linear.ts';
import { contestantsOf } from './contestants.ts';
import { crossFit, fitShrinkage, splitValidation } from './cross-fit.ts';
import type { Estimator } from './estimator.ts';
import { foldsOf } from './folds.ts';
import { type Contestant, judge, selectBest, type SelectOptions } from './select-best.ts';
import { candidate, FREE, learnable } from './test-examples.contract.ts';
import type { RouteExample } from './types.ts';

const { examples } = learnable(200, 5);
const candidates = [candidate('small'), candidate('large')];
const options: SelectOptions = { candidates, weights: FREE, costs: [0, 1], safeDefault: 1, by: 'area' };

const isHard = new Map(examples.map(({ input, outcomes }) => [input.features, outcomes[0] === 0]));

/** Knows by heart what it was shown and guesses the opposite for the rest. */
const memorizer: Contestant = {
  name: 'by heart',
  train: (train): Estimator => {
    const known = new Map(train.map(({ input, outcomes }) => [input.features, outcomes]));
    return {
      ...createConstant('by heart', 0, 2),
      estimate: ({ features }) => ({
        qualities: Float64Array.from(known.get(features) ?? [isHard.get(features) ? 1 : 0, 0.5]),
        confidence: NaN,
        why: { kind: 'best', detail: '' },
      }),
    };
  },
};
const linear: Contestant = { name: 'linear', train: (train) => trainLinear(train, 2, 512) };

test('[R11] what is only good on what it was trained on is not chosen', () => {
  const { winner, contests } = selectBest([memorizer, linear], examples, options);
  expect(winner).toBe('linear');
  expect(contests.map(({ name }) => name)).toEqual(['linear', 'by heart']);
  expect(contests[0]!.heldOut).toBeGreaterThan(0.1);
  expect(contests[1]!.heldOut).toBeLessThanOrEqual(0);
});

/** Knows the answer, but for some examples says the opposite. */
const knowing = (name: string, isWrong: (i: number) => boolean, needsVector = false): Contestant => {
  const places = new Map(examples.map(({ input }, i) => [input.features, i]));
  return {
    name,
    needsVector,
    train: () => ({
      ...createConstant(name, 0, 2),
      estimate({ features }) {
        const isLarge = isHard.get(features)! !== isWrong(places.get(features)!);
        return { qualities: Float64Array.of(+!isLarge, +isLarge), confidence: NaN, why: { kind: 'best', detail: '' } };
      },
    }),
  };
};
const byUtility: SelectOptions = { ...options, weights: { perSecond: 0, perCost: 0 }, by: 'utility' };

test('[R11] a simpler one wins unless another is better by a standard error', () => {
  const isHardAt = (i: number): boolean => isHard.get(examples[i]!.input.features)!;
  const winnerOf = (numWrong: number): string => {
    const simple = knowing('simple', (i) => isHardAt(i) && i < numWrong);
    const complex = knowing('complex', (i) => isHardAt(i) && i >= 180);
    return selectBest([simple, complex], examples, byUtility).winner;
  };
  expect(winnerOf(30)).toBe('simple'); // each is wrong in a few groups, the complex one in fewer
  expect(winnerOf(150)).toBe('complex');
});

test('[R11] weights of words are simpler than k-NN, which keeps every example', () => {
  const namesOf = (hasVectors: boolean): string[] =>
    contestantsOf({ numCandidates: 2, numBuckets: 512, hasVectors }).map(({ name }) => name);
  expect(namesOf(false)).toEqual(['length', 'linear', 'ridge', 'cosine ridge', 'k-NN']);
  expect(namesOf(true)).toEqual(['length', 'linear', 'ridge', 'cosine ridge', 'k-NN', 'vector ridge', 'logistic']);
});

test('[R11] the time of the encoder counts against those that need it', () => {
  const all = [knowing('text', (i) => i % 5 === 0), knowing('vector', () => false, true)];
  expect(selectBest(all, examples, byUtility).winner).toBe('vector');
  expect(selectBest(all, examples, { ...byUtility, vectorPenalty: 0.5 }).winner).toBe('text');
});

test('[R11] no group is on both sides, and every example is judged once', () => {
  const sides: string[][] = [];
  const spy = (train: readonly RouteExample[], validation: readonly RouteExample[]): Estimator => {
    sides.push([...train, ...validation].map(({ group }) => group));
    const outer = linear.train(train, validation);
    return { ...outer, estimate: (input) => ({ ...outer.estimate(input), why: { kind: 'best', detail: String(sides.length - 1) } }) }; // prettier-ignore
  };
  const estimates = crossFit(examples, spy, { numFolds: 4, seed: 3 });
  estimates.forEach(({ why }, i) => expect(sides[Number(why.detail)]).not.toContain(examples[i]!.group));
  const [train, validation] = splitValidation(examples, 1);
  const groups = new Set(train.map(({ group }) => group));
  expect(validation.some(({ group }) => groups.has(group))).toBe(false);
  expect(train.length + validation.length).toBe(examples.length);
  expect(new Set(foldsOf(examples, 4, 3))).toEqual(new Set([0, 1, 2, 3]));
});

test('[R12] differences that do not carry over to other groups are not believed, those that do are', () => {
  const estimates = crossFit(examples, linear.train, { numFolds: 3, seed: 1 });
  expect(fitShrinkage(examples, estimates, [0, 1])!.slopes[0]).toBeGreaterThan(0);
  const inverted = estimates.map((estimate) => ({
    ...estimate,
    qualities: estimate.qualities.map((quality) => 1 - quality),
  }));
  expect([...fitShrinkage(examples, inverted, [0, 1])!.slopes]).toEqual([0, 0]);
});

test('[R12] estimates that lose to a blind choice in every mixture that was tried are not believed at all', () => {
  // Inverted, and worse with less of either candidate: the search ends where it began, at a loss.
  const outcomes = [Float32Array.of(0, 1), Float32Array.of(1, 1), Float32Array.of(0, 1)];
  const qualities = [Float64Array.of(0.3, 0.3), Float64Array.of(0, 0.3), Float64Array.of(0.1, 0.4)];
  const { means, slopes } = fitShrinkage(
    outcomes.map((row, i) => ({ ...examples[i]!, outcomes: row })),
    qualities.map((row) => ({ qualities: row, confidence: NaN, why: { kind: 'best', detail: '' } })),
    [0, 1],
  )!;
  expect([...slopes]).toEqual([0, 0]);
  expect([...means]).toEqual([Math.fround(1 / 3), 1]);
});

test('[R12] labels without meaning give no gain', () => {
  const meaningless = examples.map((example, i) => ({ ...example, outcomes: examples[(i * 37 + 11) % 200]!.outcomes }));
  const estimates = crossFit(meaningless, linear.train, { numFolds: 3, seed: 1 });
  const { heldOut } = judge(linear, meaningless, options);
  expect(estimates).toHaveLength(200);
  expect(heldOut).toBeLessThan(0.03);
  expect(judge(linear, examples, options).heldOut).toBeGreaterThan(0.1);
});

test('by utility the prices decide: what costs more than it brings is not chosen', () => {
  const dear = [candidate('small'), candidate('large', 1)];
  const contestants = ['small', 'large'].map((id, i) => ({
    name: `always ${id}`,
    train: () => createConstant(id, i, 2),
  }));
  const chosen = (perCost: number): string =>
    selectBest(contestants, examples, { ...options, candidates: dear, weights: { perSecond: 0, perCost }, by: 'utility' }).winner; // prettier-ignore
  expect(chosen(0)).toBe('always large');
  expect(chosen(1)).toBe('always small');
});

test('rejects empty lists and outcomes of other candidates', () => {
  expect(() => selectBest([], examples, options)).toThrow(/0 policies/);
  expect(() => selectBest([linear], [], options)).toThrow(/0 examples/);
  const bad = [{ ...examples[0]!, outcomes: Float32Array.of(1) }];
  expect(() => selectBest([linear], bad, options)).toThrow(/1 outcomes for 2 candidates/);
});
