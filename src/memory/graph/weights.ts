import { MAX_EDGE_WEIGHT } from '../schemas/node.ts';
import type { MemoryEdge } from '../types.ts';

/** An edge that was no use for so long that it weighs less may be forgotten. */
export const MIN_EDGE_WEIGHT = 0.01;
/** A used item's edges grow by 5 %, an unused one's shrink by 2 %. */
export const REINFORCE_FACTOR = 1.05;
export const WEAKEN_FACTOR = 0.98;

/** What an edge weighs now: half of what it did for each half-life since it was last written. A clock that went back adds nothing. */
export function decayedWeight({ weight, updatedMs }: MemoryEdge, nowMs: number, halfLifeMs: number): number {
  return weight * 0.5 ** (Math.max(0, nowMs - updatedMs) / halfLifeMs);
}

export function clampWeight(weight: number): number {
  return Math.min(MAX_EDGE_WEIGHT, Math.max(MIN_EDGE_WEIGHT, weight));
}
