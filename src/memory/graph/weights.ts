import type { MemoryEdge } from '../types.ts';

/** Weight of the edge from a rated answer to a source it used; 1 is neutral. */
export const RATED_WEIGHTS = { success: 1.05, failure: 0.98 } as const;

const shareLeft = ({ updatedMs }: MemoryEdge, nowMs: number, halfLifeMs: number): number =>
  0.5 ** (Math.max(0, nowMs - updatedMs) / halfLifeMs);

/** Weight of an edge now: halved for each half-life since it was written. A clock set back does not raise it. */
export function decayedWeight(edge: MemoryEdge, nowMs: number, halfLifeMs: number): number {
  return edge.weight * shareLeft(edge, nowMs, halfLifeMs);
}

/** How far a rating still moves a source from neutral. */
export function decayedEffect(edge: MemoryEdge, nowMs: number, halfLifeMs: number): number {
  return (edge.weight - 1) * shareLeft(edge, nowMs, halfLifeMs);
}
