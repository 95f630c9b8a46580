import { RuvLLMError } from '../../core/errors.ts';
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
}

export interface SelectOptions {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  /** Cost of each candidate on the curve. */
  readonly costs: readonly number[];
  readonly safeDefault: number;
  /** By `area` over a blind mixture where budgets vary, or by mean `utility` of the decisions at the configured weights. */
  readonly by: 'area' | 'utility';
  /** Default 3. */
  readonly numFolds?: number;
  /** Default 1. */
  readonly seed?: number;
}

export interface Contest {
  readonly name: string;
  /** On requests of groups it was not trained on. */
  readonly heldOut: number;
  readonly rule: DecisionRule;
}

export interface Selection {
  readonly winner: string;
  readonly estimator: Estimator;
  readonly rule: DecisionRule;
  /** All contestants, best first. */
  readonly contests: readonly Contest[];
}

function meanUtility(examples: readonly RouteExample[], estimates: readonly Estimate[], rule: DecisionRule): number {
  let [sum, count] = [0, 0];
  examples.forEach(({ input, outcomes, propensities }, i) => {
    const penalties = penaltiesOf(rule.candidates, rule.weights, input);
    const scores = shrink(estimates[i]!.qualities, rule.shrinkage).map((quality, j) => quality - penalties[j]!);
    const best = bestOf(scores, penalties);
    if (Number.isNaN(outcomes[best]!)) return;
    const importance = importanceOf(propensities?.[best] ?? 1);
    sum += importance * (outcomes[best]! - penalties[best]!);
    count += importance;
  });
  return count === 0 ? -Infinity : sum / count;
}

/** Evaluates a contestant on held-out groups and fits its decision rule. */
export const judge = (contestant: Contestant, examples: readonly RouteExample[], options: SelectOptions): Contest =>
  runSteps(judgeSteps(contestant, examples, options));

function* judgeSteps(
  contestant: Contestant,
  examples: readonly RouteExample[],
  options: SelectOptions,
): Steps<Contest> {
  const { candidates, weights, costs, safeDefault, numFolds = 3, seed = 1 } = options;
  const estimates = yield* crossFitSteps(examples, contestant.train, { numFolds, seed });
  const shrinkage = options.by === 'area' ? fitShrinkage(examples, estimates, costs) : null;
  const platt = fitConfidence(examples, estimates, { candidates, weights, shrinkage });
  const rule = { candidates, weights, shrinkage, platt, safeDefault, minConfidence: MIN_CONFIDENCE };
  if (options.by === 'utility') return { name: contestant.name, heldOut: meanUtility(examples, estimates, rule), rule };
  const known = examples.flatMap(({ outcomes }, i) => (outcomes.some(Number.isNaN) ? [] : [i]));
  const heldOut = prepareCurve({
    estimates: known.map((i) => shrink(estimates[i]!.qualities, shrinkage)),
    outcomes: known.map((i) => examples[i]!.outcomes),
    costs,
  }).area();
  return { name: contestant.name, heldOut, rule };
}

/** Selects by held-out groups, then trains the winner on all examples; the first wins a tie. */
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
  contests.sort((a, b) => b.heldOut - a.heldOut);
  const [first] = contests;
  const winner = contestants.find(({ name }) => name === first!.name)!;
  yield;
  const estimator = winner.train(...splitValidation(examples, (options.seed ?? 1) + 1));
  return { winner: winner.name, estimator, rule: first!.rule, contests };
}
