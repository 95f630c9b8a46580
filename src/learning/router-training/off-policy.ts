import { meanOutcomes } from '../router/baselines/constant.ts';
import { type Candidate, penaltiesOf, type RouteExample, type UtilityWeights } from '../router/index.ts';
import { importanceOf } from '../router/labels.ts';

/** An example with the one candidate that answered it. */
export interface TriedExample extends RouteExample {
  readonly tried: number;
}

/** What a choice would have been worth, of requests that somebody else chose for. */
export type OffPolicyValue = (example: TriedExample, chosen: number) => number;

/**
 * Doubly robust (Dudík and others 2011): the mean of the chosen candidate, corrected by what really came of it where it is the one that
 * was tried, by 1 / propensity. A candidate nobody tried counts as 0.5. The means come from the training part alone.
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
