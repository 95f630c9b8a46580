import type { LowRankFactors } from '../../adapters/types.ts';

/** The parameter vector that `toFactors` split. */
export function joinFactors(factors: readonly LowRankFactors[]): Float32Array {
  return Float32Array.from(factors.flatMap(({ a, b }) => [...a, ...b]));
}
