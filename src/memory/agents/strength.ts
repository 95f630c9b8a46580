import type { Fact } from './types.ts';

const DAY_MS = 86_400_000;
/** Half-life of a fact that was never used. */
export const HALF_LIFE_MS = 30 * DAY_MS;
/** No use makes a fact last longer than this. */
export const MAX_HALF_LIFE_MS = 3650 * DAY_MS;
/** Weaker facts are not recalled. */
export const MIN_STRENGTH = 0.05;

/**
 * The strength of a memory, 0 to 1: 2^(-age / halfLife), where the age counts from the last use and each use adds 30 days to
 * the half-life. Pinned ones stay at 1. A clock that goes back makes nothing stronger than 1.
 */
export function strengthOf(
  { saidMs, usedMs, numUses, isPinned }: Pick<Fact, 'saidMs' | 'usedMs' | 'numUses' | 'isPinned'>,
  nowMs: number,
): number {
  if (isPinned) return 1;
  const ageMs = Math.max(0, nowMs - Math.max(saidMs, usedMs[0] ?? 0));
  const halfLifeMs = Math.min(MAX_HALF_LIFE_MS, HALF_LIFE_MS * (1 + numUses));
  return 2 ** (-ageMs / halfLifeMs);
}
