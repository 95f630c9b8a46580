import { RuvLLMError } from '../../core/errors.ts';
import { penaltiesOf, type UtilityWeights } from './candidates.ts';
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
