import { bestOf, type UtilityWeights } from '../../../../../src/learning/router/candidates.ts';
import { importanceOf, utilitiesOf } from '../../../../../src/learning/router/labels.ts';
import type { Candidate, RouteExample } from '../../../../../src/learning/router/types.ts';
import type { Targets } from './loss.ts';

/**
 * The target outputs. The best known outcome is the label if two are known; of a single one only praise says anything about the choice.
 */
export function targetsOf(
  example: RouteExample,
  candidates: readonly Candidate[],
  weights: UtilityWeights,
): Omit<Targets, 'confidence'> {
  const utilities = utilitiesOf(example, candidates, weights);
  const importance = Float64Array.from(utilities, (utility, i) =>
    Number.isNaN(utility) ? 0 : importanceOf(example.propensities?.[i] ?? 1),
  );
  const numKnown = utilities.reduce((count, utility) => count + +!Number.isNaN(utility), 0);
  const best = bestOf(utilities.map((utility) => (Number.isNaN(utility) ? -Infinity : utility)));
  const praise = numKnown === 1 ? example.outcomes[best]! : 1;
  const isLabelled = numKnown > 1 || (numKnown === 1 && praise > 0.5);
  return {
    choice: isLabelled ? best : -1,
    choiceWeight: isLabelled ? praise * importance[best]! : 0,
    qualities: example.outcomes,
    qualityWeights: importance,
  };
}
