import { expect, test } from 'vitest';
import { createRandom } from '../../../core/random.ts';
import { FREE, learnable, SMALL_AND_LARGE } from '../test-examples.contract.ts';
import { createPolicy } from '../decision-rule.ts';
import { factorRidge, leaveOut, solveRidge, squaredErrors, sumEquations } from './normal-equations.ts';
import { RIDGE_DEFAULTS, trainRidge } from './ridge.ts';

const WIDTH = 5;
const random = createRandom(4);
const rows = Array.from({ length: 40 }, () => Float64Array.from({ length: WIDTH }, (_, i) => (i === 0 ? 1 : random.next() - 0.5))); // prettier-ignore
const targets = rows.map((row) => Float64Array.of(1 + 2 * row[1]! - row[3]! + 0.1 * random.next(), random.next()));
const weights = rows.map(() => 1 + random.next());
const folds = rows.map((_, i) => i % 3);
const equations = sumEquations(rows, targets, weights, folds, 3);
const errorOf = (solved: Float64Array, t: number, row: number): number =>
  rows[row]!.reduce((sum, value, i) => sum + value * solved[t * WIDTH + i]!, 0) - targets[row]![t]!;

test.each([
  [5, 0.7],
  [3, 2],
  [1, 0],
])('[R21] the solution on %d columns with ridge %d has no gradient', (size, ridge) => {
  const solved = solveRidge(factorRidge(leaveOut(equations.grams, -1), WIDTH, ridge), leaveOut(equations.rights, -1), WIDTH, size); // prettier-ignore
  for (let t = 0; t < 2; t++)
    for (let i = 0; i < WIDTH; i++) {
      const value = solved[t * WIDTH + i]!;
      if (i >= size) expect(value).toBe(0);
      else {
        const slope = rows.reduce((sum, row, r) => sum + weights[r]! * errorOf(solved, t, r) * row[i]!, 0);
        expect(slope + (i === 0 ? 0 : ridge * value)).toBeCloseTo(0, 6);
      }
    }
});

test('[R21] the error of a fold that was left out is that of its rows', () => {
  for (let fold = 0; fold < 3; fold++) {
    const solved = solveRidge(factorRidge(leaveOut(equations.grams, fold), WIDTH, 0.3), leaveOut(equations.rights, fold), WIDTH, 4); // prettier-ignore
    const errors = squaredErrors(equations, fold, solved);
    for (let t = 0; t < 2; t++) {
      let expected = 0;
      for (let r = 0; r < rows.length; r++) if (folds[r] === fold) expected += weights[r]! * errorOf(solved, t, r) ** 2;
      expect(errors[t]).toBeCloseTo(expected, 8);
    }
  }
});

const { encoder, examples } = learnable(200, 5);
const fresh = learnable(60, 6, encoder).examples;

test('[R21] it learns what separates requests, of all outcomes and of one each', () => {
  const shown = examples.map((example, i) => ({
    ...example,
    outcomes: example.outcomes.map((value, j) => (i % 2 === j ? value : NaN)),
    propensities: Float32Array.of(0.5, 0.5),
  }));
  for (const train of [examples, shown]) {
    const estimator = trainRidge(train, 2);
    for (const { input, outcomes } of fresh) {
      const { qualities } = estimator.estimate(input);
      expect(qualities[0]! > 0.5).toBe(outcomes[0] === 1);
      expect(qualities[1]).toBeGreaterThan(0.8);
    }
  }
});

test('[R21] where groups contradict each other nothing but the means is believed', () => {
  // In every other group the opposite holds: true to itself inside a group, worthless outside of it.
  const contrary = examples.map((example, i) => {
    const isOdd = Math.floor(i / 10) % 2 === 1;
    return { ...example, outcomes: Float32Array.of(isOdd ? 1 - example.outcomes[0]! : example.outcomes[0]!, 1) };
  });
  const mean = contrary.reduce((sum, { outcomes }) => sum + outcomes[0]!, 0) / contrary.length;
  const estimator = trainRidge(contrary, 2);
  for (const { input } of fresh) expect(estimator.estimate(input).qualities[0]).toBeCloseTo(mean, 2);
  const credulous = trainRidge(contrary, 2, { ...RIDGE_DEFAULTS, ridges: [1], directions: [16], mayBeConstant: false });
  const distances = fresh.map(({ input }) => Math.abs(credulous.estimate(input).qualities[0]! - mean));
  expect(Math.max(...distances)).toBeGreaterThan(0.1);
});

test('[R17] good news about a candidate moves it there, bad news away again', () => {
  const estimator = trainRidge(examples, 2);
  const rule = { candidates: SMALL_AND_LARGE, weights: FREE, shrinkage: null, platt: null, safeDefault: -1, minConfidence: 0 }; // prettier-ignore
  const policy = createPolicy(estimator, rule);
  const share = (): number => fresh.filter(({ input }) => policy.decide(input).candidate === 0).length / fresh.length;
  const tell = (quality: number): void =>
    examples.forEach(({ input }) => policy.update({ input, candidate: 0, quality, propensity: 1 }));
  expect(share()).toBeLessThan(0.7);
  for (let i = 0; i < 3; i++) tell(1);
  const praised = share();
  for (let i = 0; i < 3; i++) tell(0);
  expect([praised > 0.45, share()]).toEqual([true, 0]);
});

test('[R17] what an outcome teaches is first of all for requests like it', () => {
  const estimator = trainRidge(examples, 2);
  const [hard, easy] = [0, 1].map((outcome) => fresh.find(({ outcomes }) => outcomes[0] === outcome)!.input);
  const qualities = (): number[] => [hard!, easy!].map((input) => estimator.estimate(input).qualities[0]!);
  const before = qualities();
  for (let i = 0; i < 10; i++) estimator.update({ input: hard!, candidate: 0, quality: 1, propensity: 1 });
  const [like, unlike] = qualities().map((value, i) => value - before[i]!);
  expect(like).toBeGreaterThan(0.8);
  expect(unlike).toBeLessThan(0.3);
});

test('[R21] by cosine, a direction that hardly varies is not believed like one that does', () => {
  // Two directions of the embedding: the second a hundredth as long, and no other feature says anything.
  const random = createRandom(11);
  const made = Array.from({ length: 200 }, (_, i) => {
    const [long, short] = [random.next() - 0.5, (random.next() - 0.5) / 100];
    const features = new Float32Array(128);
    features.set([long * 3, short * 300], 32);
    const input = { ...examples[0]!.input, features, embedding: Float32Array.of(long, short) };
    return {
      input,
      outcomes: Float32Array.of(0.5 + 0.2 * Math.sign(long), 0.5 + 0.2 * Math.sign(short)),
      group: String(i),
    };
  });
  const spread = (isScaled: boolean, candidate: number): number => {
    const estimator = trainRidge(made, 2, { ...RIDGE_DEFAULTS, ridges: [30], directions: [2], isScaled });
    const told = made.map(({ input }) => estimator.estimate(input).qualities[candidate]!);
    return Math.max(...told) - Math.min(...told);
  };
  expect(spread(true, 0)).toBeGreaterThan(0.2);
  expect(spread(true, 1)).toBeGreaterThan(0.2);
  expect(spread(false, 0)).toBeGreaterThan(0.2);
  expect(spread(false, 1)).toBeLessThan(0.15);
});
