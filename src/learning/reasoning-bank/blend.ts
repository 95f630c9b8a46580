import type { HeardPattern } from './near-patterns.ts';

/** Largest share of patterns in a decision of the router. */
export const MAX_BANK_SHARE = 0.3;
/** Patterns below this confidence are ignored. */
export const MIN_BLEND_CONFIDENCE = 0.5;

/** Moves the probabilities of the candidates by at most `MAX_BANK_SHARE` towards those that near patterns recommend. */
export function blendPatterns(
  probs: readonly number[],
  candidates: readonly string[],
  found: readonly HeardPattern[],
): { readonly probs: readonly number[]; readonly share: number; readonly votedIds: readonly string[] } {
  const votes = candidates.map(() => 0);
  const votedIds: string[] = [];
  let weight = 0;
  for (const { pattern, weight: own } of found) {
    const at = pattern.recommendedModel === null ? -1 : candidates.indexOf(pattern.recommendedModel);
    if (at < 0 || pattern.confidence <= MIN_BLEND_CONFIDENCE || own <= 0) continue;
    votes[at]! += own;
    weight += own;
    votedIds.push(pattern.id);
  }
  if (weight === 0) return { probs, share: 0, votedIds };
  const share = Math.min(MAX_BANK_SHARE, MAX_BANK_SHARE * weight);
  return { probs: probs.map((p, i) => (1 - share) * p + (share * votes[i]!) / weight), share, votedIds };
}
