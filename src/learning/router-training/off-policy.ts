import { meanOutcomes } from '../router/baselines/constant.ts';
import { type Candidate, penaltiesOf, type RouteExample, type UtilityWeights } from '../router/index.ts';
import { importanceOf } from '../router/labels.ts';

/** An example with the candidate that answered it. */
export interface TriedExample extends RouteExample {
  readonly tried: number;
}

/** Estimated utility of choosing a candidate for a request that another policy routed. */
export type OffPolicyValue = (example: TriedExample, chosen: number) => number;

/**
 * Doubly robust estimate (Dudík et al. 2011): the mean outcome of the chosen candidate, plus (outcome − mean) / propensity if that
 * candidate was tried. An untried candidate has mean 0.5. The means come from the training part alone.
 */
export function createOffPolicyValue(
  train: readonly RouteExample[],
  candidates: readonly Candidate[],
  weights: UtilityWeights,
): OffPolicyValue {
  const means = meanOutcomes(train, candidates.length);
  return (example, chosen) => {
    const mean = means[chosen]!;
    const { tried, outcomes, propensities } = example;
    const surprise =
      tried === chosen ? importanceOf(propensities?.[tried] ?? 1) * (outcomes[tried]! - means[tried]!) : 0;
    return mean + surprise - penaltiesOf(candidates, weights, example.input)[chosen]!;
  };
}
