import type { HeardPattern } from '../../learning/reasoning-bank/near-patterns.ts';
import { blendPatterns } from '../../learning/reasoning-bank/blend.ts';
import { bestOf, type RouteDecision } from '../../learning/router/index.ts';
import type { ChoiceKind } from './types.ts';

export interface JudgeRules {
  readonly ids: readonly string[];
  /** The name of each candidate in patterns; null: none. */
  readonly patternNames: readonly (string | null)[];
  readonly safeDefault: number;
  readonly minConfidence: number;
}

export interface JudgedRoute {
  readonly candidate: number;
  readonly probs: readonly number[];
  readonly confidence: number;
  /** Weight of the patterns. */
  readonly share: number;
  /** Patterns that influenced the choice. */
  readonly patternIds: readonly string[];
  readonly why: { readonly kind: ChoiceKind; readonly detail: string };
}

/** Scores that differ by this much are clearly different. */
const SCORE_SCALE = 0.1;

/**
 * The probability of each candidate to be among the best: the calibrated confidence for the best one; the others share the rest by
 * their scores, none above the best. The sum need not be one.
 */
export function toProbs(scores: ArrayLike<number>, best: number, confidence: number): number[] {
  const all = Array.from(scores);
  const top = Math.max(...all.filter((_, i) => i !== best));
  const shares = all.map((score, i) => (i === best || score === -Infinity ? 0 : Math.exp((score - top) / SCORE_SCALE)));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share, i) =>
    i === best ? confidence : total === 0 ? 0 : Math.min(confidence, ((1 - confidence) * share) / total),
  );
}

/** Combines the router's scores with near patterns and the candidates that can answer. */
export function judgeRoute(
  decision: Pick<RouteDecision, 'scores' | 'candidate' | 'confidence' | 'why'> | null,
  found: readonly HeardPattern[],
  isAble: readonly boolean[],
  rules: JudgeRules,
  /** Why there is no decision. */
  missing = 'no router is trained for this tenant',
): JudgedRoute {
  const { ids, safeDefault, minConfidence } = rules;
  const last = isAble[safeDefault] ? safeDefault : isAble.indexOf(true);
  const retreat = (
    judged: Omit<JudgedRoute, 'candidate' | 'why'>,
    detail: string,
    kind: ChoiceKind = 'safe-default',
  ): JudgedRoute => ({
    ...judged,
    candidate: last,
    why: { kind, detail: last === safeDefault ? detail : `${detail}; "${ids[safeDefault]}" cannot answer this` },
  });
  if (decision === null) {
    const probs = isAble.map((able) => (able ? 1 / isAble.length : 0));
    return retreat({ probs, confidence: 0, share: 0, patternIds: [] }, missing);
  }
  const scores = Array.from(decision.scores, (score, i) => (isAble[i] ? score : -Infinity));
  if (decision.why.kind === 'unfamiliar') {
    // The estimates are of other kinds of requests, so its confidence says nothing.
    const probs = isAble.map((able) => (able ? 1 / isAble.length : 0));
    return retreat({ probs, confidence: 0, share: 0, patternIds: [] }, decision.why.detail, 'unfamiliar');
  }
  const best = isAble[decision.candidate] ? decision.candidate : bestOf(scores);
  const own = best === decision.candidate ? decision.confidence : 0;
  const names = rules.patternNames.map((name, i) => (isAble[i] && name !== null ? name : ''));
  const { probs, share, votedIds } = blendPatterns(toProbs(scores, best, own), names, found);
  const candidate = probs[best]! >= Math.max(...probs) ? best : bestOf(probs);
  const confidence = Math.max(0, Math.min(1, probs[candidate]!));
  const judged = { probs, confidence, share, patternIds: votedIds };
  if (best !== decision.candidate && candidate === last)
    return retreat(judged, `"${ids[decision.candidate]}", the best candidate, cannot answer this now`);
  if (candidate !== last && confidence < minConfidence)
    return retreat(judged, `confidence ${confidence.toFixed(3)} for "${ids[candidate]}" is below ${minConfidence}`);
  const detail = candidate === best ? decision.why.detail : `similar requests favour it (weight ${share.toFixed(2)})`; // prettier-ignore
  return { ...judged, candidate, why: { kind: decision.why.kind, detail } };
}
