import { RuvLLMError } from '../../core/errors.ts';
import { createRandom } from '../../core/random.ts';
import { meanOutcomes } from './baselines/constant.ts';
import { prepareCurve } from './cost-quality.ts';
import { crossFitSteps, fitConfidence, fitShrinkage, splitValidation, type Trainer } from './cross-fit.ts';
import { type DecisionRule, MIN_CONFIDENCE, shrink } from './decision-rule.ts';
import type { Estimate, Estimator } from './estimator.ts';
import { checkExample, importanceOf } from './labels.ts';
import { penaltiesOf, bestOf, type UtilityWeights } from './candidates.ts';
import { runSteps, type Steps } from './steps.ts';
import type { Candidate, RouteExample } from './types.ts';

export interface Contestant {
  readonly name: string;
  readonly train: Trainer;
  /** Reads sentence vectors: choosing it costs every request the time of the encoder. Default false. */
  readonly needsVector?: boolean;
}

export interface SelectOptions {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  /** Cost of each candidate on the curve. */
  readonly costs: readonly number[];
  readonly safeDefault: number;
  /** By `area` over a blind mixture where budgets vary, or by mean `utility` of the decisions at the configured weights. */
  readonly by: 'area' | 'utility';
  /** Utility that embedding a request takes away from contestants that need its vector. Default 0. */
  readonly vectorPenalty?: number;
  /** Default 3. */
  readonly numFolds?: number;
  /** Default 1. */
  readonly seed?: number;
}

export interface Contest {
  readonly name: string;
  /** On requests of groups it was not trained on. */
  readonly heldOut: number;
  /** The same for resamples of the groups, which are those of all contestants. */
  readonly resampled: Float64Array;
  readonly rule: DecisionRule;
}

export interface Selection {
  readonly winner: string;
  readonly estimator: Estimator;
  readonly rule: DecisionRule;
  /** All contestants, best first. */
  readonly contests: readonly Contest[];
}

/** By example, the utility of the choice; where its outcome is unknown, the mean of the candidate, and 1 / propensity corrects for it. */
function utilitiesOfChoices(
  examples: readonly RouteExample[],
  estimates: readonly Estimate[],
  rule: DecisionRule,
): Float64Array {
  const means = meanOutcomes(examples, rule.candidates.length);
  return Float64Array.from(examples, ({ input, outcomes, propensities }, i) => {
    const penalties = penaltiesOf(rule.candidates, rule.weights, input);
    const scores = shrink(estimates[i]!.qualities, rule.shrinkage).map((quality, j) => quality - penalties[j]!);
    const best = bestOf(scores, penalties);
    const outcome = outcomes[best]!;
    const surprise = Number.isNaN(outcome) ? 0 : importanceOf(propensities?.[best] ?? 1) * (outcome - means[best]!);
    return means[best]! + surprise - penalties[best]!;
  });
}

const NUM_RESAMPLES = 40;

/** How often each example counts in each resample of the groups. */
function resample(examples: readonly RouteExample[], seed: number): Float64Array[] {
  const groups = [...new Set(examples.map(({ group }) => group))];
  const places = new Map(groups.map((group, i) => [group, i]));
  const random = createRandom(seed);
  return Array.from({ length: NUM_RESAMPLES }, () => {
    const counts = new Float64Array(groups.length);
    for (let i = 0; i < groups.length; i++) counts[Math.floor(random.next() * groups.length)]! += 1;
    return Float64Array.from(examples, ({ group }) => counts[places.get(group)!]!);
  });
}

function meanOf(values: Float64Array, counts?: Float64Array): number {
  let [sum, total] = [0, 0];
  for (let i = 0; i < values.length; i++) {
    const count = counts?.[i] ?? 1;
    sum += count * values[i]!;
    total += count;
  }
  return sum / total;
}

/** Evaluates a contestant on held-out groups and fits its decision rule. */
export const judge = (contestant: Contestant, examples: readonly RouteExample[], options: SelectOptions): Contest =>
  runSteps(judgeSteps(contestant, examples, options));

function* judgeSteps(
  contestant: Contestant,
  examples: readonly RouteExample[],
  options: SelectOptions,
): Steps<Contest> {
  const { candidates, weights, costs, safeDefault, vectorPenalty = 0, numFolds = 3, seed = 1 } = options;
  const { name, needsVector = false } = contestant;
  const estimates = yield* crossFitSteps(examples, contestant.train, { numFolds, seed });
  const shrinkage = options.by === 'area' ? fitShrinkage(examples, estimates, costs) : null;
  const platt = fitConfidence(examples, estimates, { candidates, weights, shrinkage });
  const rule = { candidates, weights, shrinkage, platt, safeDefault, minConfidence: MIN_CONFIDENCE };
  if (options.by === 'utility') {
    const values = utilitiesOfChoices(examples, estimates, rule);
    const lessPenalty = (mean: number): number => mean - (needsVector ? vectorPenalty : 0);
    const resampled = Float64Array.from(resample(examples, seed), (counts) => lessPenalty(meanOf(values, counts)));
    return { name, heldOut: lessPenalty(meanOf(values)), resampled, rule };
  }
  const known = examples.flatMap(({ outcomes }, i) => (outcomes.some(Number.isNaN) ? [] : [i]));
  const curve = prepareCurve({
    estimates: known.map((i) => shrink(estimates[i]!.qualities, shrinkage)),
    outcomes: known.map((i) => examples[i]!.outcomes),
    costs,
  });
  const resamples = resample(known.map((i) => examples[i]!), seed); // prettier-ignore
  return { name, heldOut: curve.area(), resampled: Float64Array.from(resamples, (counts) => curve.area(counts)), rule };
}

/** The first contest that is at most one standard error of the difference below the best one. */
export function simplestOf(contests: readonly Contest[]): Contest {
  const best = contests.reduce((a, b) => (b.heldOut > a.heldOut ? b : a));
  return contests.find((one) => {
    const differences = best.resampled.map((value, i) => value - one.resampled[i]!);
    const mean = meanOf(differences);
    const error = Math.sqrt(meanOf(differences.map((value) => (value - mean) ** 2)));
    return best.heldOut - one.heldOut <= error;
  })!;
}

/** Selects by held-out groups, then trains the winner on all examples; a simpler contestant wins unless another is better by a standard error. */
export const selectBest = (
  contestants: readonly Contestant[],
  examples: readonly RouteExample[],
  options: SelectOptions,
): Selection => runSteps(selectBestSteps(contestants, examples, options));

/** Yields between trainings, so that the caller can stop it. */
export function* selectBestSteps(
  contestants: readonly Contestant[],
  examples: readonly RouteExample[],
  options: SelectOptions,
): Steps<Selection> {
  if (contestants.length === 0 || examples.length === 0)
    throw new RuvLLMError('invalid_option', `selection requires policies and examples, got ${contestants.length} policies and ${examples.length} examples`); // prettier-ignore
  for (const example of examples) checkExample(example, options.candidates.length);
  const contests: Contest[] = [];
  for (const contestant of contestants) contests.push(yield* judgeSteps(contestant, examples, options));
  const { name, rule } = simplestOf(contests);
  const winner = contestants.find((one) => one.name === name)!;
  yield;
  const estimator = winner.train(...splitValidation(examples, (options.seed ?? 1) + 1));
  return { winner: name, estimator, rule, contests: contests.toSorted((a, b) => b.heldOut - a.heldOut) };
}
