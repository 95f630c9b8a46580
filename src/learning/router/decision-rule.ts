import { bestOf, penaltiesOf, type UtilityWeights } from './candidates.ts';
import { calibrate, type Platt } from './calibration.ts';
import type { Estimator } from './estimator.ts';
import { type Familiarity, nearestSimilarity } from './familiarity.ts';
import type { Candidate, RouteInput, RoutePolicy } from './types.ts';

/** How much of an estimate's differences between requests is believed, by candidate: mean + slope · (estimate − mean). */
export interface Shrinkage {
  readonly means: Float32Array;
  readonly slopes: Float32Array;
}

export interface DecisionRule {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  readonly shrinkage: Shrinkage | null;
  readonly platt: Platt | null;
  /** Where a request goes when confidence is below `minConfidence`; −1: nowhere else. */
  readonly safeDefault: number;
  readonly minConfidence: number;
  /** Finds requests unlike all rated ones, which the safe default answers. Default: not checked. */
  readonly familiarity?: Familiarity | null;
}

/** The configured threshold below which the safe default answers. */
export const MIN_CONFIDENCE = 0.7;

export function shrink(qualities: Float64Array, shrinkage: Shrinkage | null): Float64Array {
  if (shrinkage === null) return qualities;
  const { means, slopes } = shrinkage;
  return qualities.map((quality, i) => means[i]! + slopes[i]! * (quality - means[i]!));
}

/** Lead of the best score over the next. */
export function leadOf(scores: ArrayLike<number>, best: number): number {
  let next = -Infinity;
  for (let i = 0; i < scores.length; i++) if (i !== best) next = Math.max(next, scores[i]!);
  return Number.isFinite(next) ? scores[best]! - next : 1;
}

function unfamiliarReason(familiarity: Familiarity | null, { vector }: RouteInput): string | null {
  if (familiarity === null || vector === undefined) return null;
  const nearest = nearestSimilarity(familiarity, vector);
  if (nearest >= familiarity.minSimilarity) return null;
  return `unlike all rated requests: the nearest has a similarity of ${nearest.toFixed(2)}, familiar ones have ${familiarity.minSimilarity.toFixed(2)} or more`;
}

/** A policy of an estimator: the same prices, doubts and default for all that are compared. */
export function createPolicy(estimator: Estimator, rule: DecisionRule): RoutePolicy {
  const { candidates, weights, shrinkage, platt, safeDefault, minConfidence, familiarity = null } = rule;
  return {
    name: estimator.name,
    decide(input: RouteInput) {
      const estimate = estimator.estimate(input);
      const qualities = shrink(estimate.qualities, shrinkage);
      const penalties = penaltiesOf(candidates, weights, input);
      const scores = qualities.map((quality, i) => quality - penalties[i]!);
      const best = bestOf(scores, penalties);
      const raw = Number.isNaN(estimate.confidence) ? leadOf(scores, best) : estimate.confidence;
      const confidence = platt === null ? Math.max(0, Math.min(1, raw)) : calibrate(platt, raw);
      const unfamiliar = safeDefault < 0 ? null : unfamiliarReason(familiarity, input);
      if (unfamiliar !== null) {
        const why = { ...estimate.why, kind: 'unfamiliar' as const, detail: unfamiliar };
        return { candidate: safeDefault, scores, qualities, confidence, why };
      }
      const isUnsure = safeDefault >= 0 && confidence < minConfidence && best !== safeDefault;
      const why = isUnsure
        ? {
            ...estimate.why,
            kind: 'safe-default' as const,
            detail: `confidence ${confidence.toFixed(3)} for "${candidates[best]!.id}" is below ${minConfidence}`,
          }
        : estimate.why;
      return { candidate: isUnsure ? safeDefault : best, scores, qualities, confidence, why };
    },
    update: (feedback) => estimator.update(feedback),
    save: () => estimator.save(),
  };
}
