import { RuvLLMError } from '../../core/errors.ts';
import { bestOf, penaltiesOf, type UtilityWeights } from './candidates.ts';
import type { Targets } from './fastgrnn/loss.ts';
import type { Candidate, RouteExample } from './types.ts';

/** A candidate tried once in a thousand must not outweigh a thousand others. */
export const MAX_IMPORTANCE = 20;

/** 1 / propensity, clipped: how many untried requests like it one that was tried stands for. */
export function importanceOf(propensity: number): number {
  if (!(propensity > 0 && propensity <= 1))
    throw new RuvLLMError('invalid_option', `a propensity must be above 0 and at most 1, got ${propensity}`);
  return Math.min(MAX_IMPORTANCE, 1 / propensity);
}

/** Quality less the penalties, NaN where a candidate was not tried. */
export function utilitiesOf(
  example: RouteExample,
  candidates: readonly Candidate[],
  weights: UtilityWeights,
): Float64Array {
  const penalties = penaltiesOf(candidates, weights, example.input);
  return penalties.map((penalty, i) => example.outcomes[i]! - penalty);
}

/** Throws for outcomes of another number of candidates or out of range, before anything learns from them. */
export function checkExample(example: RouteExample, numCandidates: number): void {
  const { outcomes, propensities } = example;
  if (outcomes.length !== numCandidates || (propensities !== undefined && propensities.length !== numCandidates))
    throw new RuvLLMError('invalid_option', `${outcomes.length} outcomes for ${numCandidates} candidates`);
  for (const quality of outcomes)
    if (!Number.isNaN(quality) && !(quality >= 0 && quality <= 1))
      throw new RuvLLMError('invalid_option', `a quality must be from 0 to 1, got ${quality}`);
}

/**
 * What the network should have said. The best of what is known is the label once two are known; of one alone only praise says
 * anything about the choice.
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
    contextBucket: example.contextBucket ?? -1,
    temperature: example.temperature ?? NaN,
    topP: example.topP ?? NaN,
  };
}
