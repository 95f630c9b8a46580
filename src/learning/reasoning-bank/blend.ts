import type { HeardPattern } from './near-patterns.ts';

/** Most that patterns may weigh against what the router itself believes. */
export const MAX_BANK_SHARE = 0.3;
/** Patterns less sure than this are not heard. */
export const MIN_BLEND_CONFIDENCE = 0.5;

/** Probabilities of the candidates, moved towards those that near patterns speak for by at most `MAX_BANK_SHARE`. */
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
