import type { VectorFilter } from './types.ts';

/** Distances computed per kept vector in a graph search. */
const VISITS_PER_KEPT = 28;
/** Keys tested to estimate the selectivity of a filter. */
const SAMPLE = 256;

/** Scan the matching vectors, or walk the graph with a width for this share of matches. */
type FilterPlan = { readonly scan: true } | { readonly scan: false; readonly share: number };

/**
 * With m of n vectors matching, a scan computes m distances, and a graph search that keeps `ef` matches about 28 ef n / m. The
 * scan, which is exact, is cheaper below m = sqrt(28 ef n).
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
