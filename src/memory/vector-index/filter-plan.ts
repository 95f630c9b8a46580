import type { VectorFilter } from './types.ts';

/** Distances that a graph search computes for each vector it keeps. */
const VISITS_PER_KEPT = 28;
/** Keys asked to estimate what a filter lets through. */
const SAMPLE = 256;

/** How a filtered search goes: over those that pass, one by one, or through the graph, keeping so many that enough of them pass. */
export type FilterPlan = { readonly scan: true } | { readonly scan: false; readonly share: number };

/**
 * With n vectors of which m pass, a scan compares m, a graph search that shall keep `ef` passing ones some 28 ef n / m: the scan
 * is cheaper below m = sqrt(28 ef n), and exact.
 */
export function planFilter(
  filter: VectorFilter,
  ef: number,
  numKeys: number,
  sampleKeys: (count: number) => readonly number[],
): FilterPlan {
  const passing = filter.size ?? estimatePassing(filter, numKeys, sampleKeys(SAMPLE));
  if (passing <= Math.sqrt(VISITS_PER_KEPT * ef * numKeys)) return { scan: true };
  return { scan: false, share: Math.min(1, passing / numKeys) };
}

function estimatePassing(filter: VectorFilter, numKeys: number, sample: readonly number[]): number {
  let passing = 0;
  for (const key of sample) if (filter.has(key)) passing++;
  return sample.length === 0 ? 0 : (passing / sample.length) * numKeys;
}
