import { fitPlatt, type Platt } from './calibration.ts';
import { bestOf, penaltiesOf, type UtilityWeights } from './candidates.ts';
import { prepareCurve } from './cost-quality.ts';
import { leadOf, shrink, type Shrinkage } from './decision-rule.ts';
import type { Estimate, Estimator } from './estimator.ts';
import { foldsOf } from './folds.ts';
import { meanOutcomes } from './baselines/constant.ts';
import { utilitiesOf } from './labels.ts';
import { runSteps, type Steps } from './steps.ts';
import type { Candidate, RouteExample } from './types.ts';

/** Makes an estimator of examples; `validation` is for stopping early and never a part of what is judged. */
export type Trainer = (train: readonly RouteExample[], validation: readonly RouteExample[]) => Estimator;

interface CrossFitOptions {
  readonly numFolds: number;
  readonly seed: number;
}

/** Estimates of every example by an estimator that saw none of its group. */
export const crossFit = (examples: readonly RouteExample[], train: Trainer, options: CrossFitOptions): Estimate[] =>
  runSteps(crossFitSteps(examples, train, options));

/** Yields before each training. */
export function* crossFitSteps(
  examples: readonly RouteExample[],
  train: Trainer,
  options: CrossFitOptions,
): Steps<Estimate[]> {
  const folds = foldsOf(examples, options.numFolds, options.seed);
  const estimates: Estimate[] = Array.from({ length: examples.length });
  for (let fold = 0; fold < options.numFolds; fold++) {
    const others = examples.filter((_, i) => folds[i] !== fold);
    yield;
    const estimator = train(...splitValidation(others, options.seed + 1));
    examples.forEach((example, i) => {
      if (folds[i] === fold) estimates[i] = estimator.estimate(example.input);
    });
  }
  return estimates;
}

/** A sixth of the groups, to stop early by. */
export function splitValidation(examples: readonly RouteExample[], seed: number): [RouteExample[], RouteExample[]] {
  const folds = foldsOf(examples, 6, seed);
  return [examples.filter((_, i) => folds[i] !== 0), examples.filter((_, i) => folds[i] === 0)];
}

const SLOPES = [0, 0.5, 1];
/** With more candidates than this (intents) each is one of many and none has differences of its own to doubt. */
const MAX_SHRUNK = 16;

/**
 * How much of each candidate's differences is to be believed: what gives the largest area on requests of groups that were not
 * trained on. A candidate whose difficulty does not carry over to other groups only adds noise to every comparison with it.
 */
export function fitShrinkage(
  examples: readonly RouteExample[],
  estimates: readonly Estimate[],
  costs: readonly number[],
): Shrinkage | null {
  const numCandidates = costs.length;
  const known = examples.flatMap(({ outcomes }, i) => (outcomes.some(Number.isNaN) ? [] : [i]));
  if (numCandidates > MAX_SHRUNK || known.length === 0) return null;
  const means = meanOutcomes(examples, numCandidates);
  const outcomes = known.map((i) => examples[i]!.outcomes);
  const areaOf = (slopes: Float32Array): number =>
    prepareCurve({ estimates: known.map((i) => shrink(estimates[i]!.qualities, { means, slopes })), outcomes, costs }).area(); // prettier-ignore
  let best = new Float32Array(numCandidates).fill(1);
  let bestArea = areaOf(best);
  for (let pass = 0; pass < 2; pass++) {
    for (let candidate = 0; candidate < numCandidates; candidate++) {
      for (const slope of SLOPES) {
        const slopes = best.slice();
        slopes[candidate] = slope;
        const area = areaOf(slopes);
        if (area > bestArea) [best, bestArea] = [slopes, area];
      }
    }
  }
  // If no slopes beat a blind choice, all differences are noise.
  return { means, slopes: bestArea > 0 ? best : best.fill(0) };
}

/** Calibration of the raw confidence by whether the choice was as good as any, on estimates that were not trained on them. */
export function fitConfidence(
  examples: readonly RouteExample[],
  estimates: readonly Estimate[],
  context: { candidates: readonly Candidate[]; weights: UtilityWeights; shrinkage: Shrinkage | null },
): Platt {
  const raw: number[] = [];
  const isRight: boolean[] = [];
  examples.forEach((example, i) => {
    const penalties = penaltiesOf(context.candidates, context.weights, example.input);
    const scores = shrink(estimates[i]!.qualities, context.shrinkage).map((quality, j) => quality - penalties[j]!);
    const best = bestOf(scores, penalties);
    const utilities = utilitiesOf(example, context.candidates, context.weights);
    if (Number.isNaN(utilities[best]!)) return;
    const { confidence } = estimates[i]!;
    raw.push(Number.isNaN(confidence) ? Math.min(1, leadOf(scores, best)) : confidence);
    const known = utilities.filter((utility) => !Number.isNaN(utility));
    // A single known outcome is always the best one, so its quality decides whether the choice was right.
    isRight.push(known.length === 1 ? example.outcomes[best]! > 0.5 : utilities[best]! >= Math.max(...known));
  });
  return fitPlatt(raw, isRight);
}
