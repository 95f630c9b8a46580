import type { MemoryEdge } from '../types.ts';

/** What a rating makes of the edge from an answer to a source it used: +5 % for a good answer, −2 % for a bad one, of a neutral 1. */
export const RATED_WEIGHTS = { success: 1.05, failure: 0.98 } as const;

const shareLeft = ({ updatedMs }: MemoryEdge, nowMs: number, halfLifeMs: number): number =>
  0.5 ** (Math.max(0, nowMs - updatedMs) / halfLifeMs);

/** Weight of an edge now: half for each half-life since it was written. A clock that went back adds nothing. */
export function decayedWeight(edge: MemoryEdge, nowMs: number, halfLifeMs: number): number {
  return edge.weight * shareLeft(edge, nowMs, halfLifeMs);
}

/** How far a rating still moves a source from neutral. */
export function decayedEffect(edge: MemoryEdge, nowMs: number, halfLifeMs: number): number {
  return (edge.weight - 1) * shareLeft(edge, nowMs, halfLifeMs);
}
