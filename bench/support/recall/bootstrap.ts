import { createRandom } from './random.ts';

/** Ranks of the evidence, question by question; Infinity: not found. */
export interface Outcome {
  readonly bm25: number[];
  readonly vector: number[];
  readonly hybrid: number[];
  readonly searchMs: number[];
}

const NUM_SAMPLES = 2000;
const SEED = 17;

/**
 * By how much the hybrid search finds more evidence among the first k than one of its parts: the mean over the sets, with a 95 %
 * interval by a paired bootstrap within each set.
 */
export function compareAt(
  outcomes: readonly Outcome[],
  part: 'bm25' | 'vector',
  k: number,
): { readonly mean: number; readonly low: number; readonly high: number } {
  return compareRanks(outcomes.map((outcome) => [outcome.hybrid, outcome[part]] as const), k); // prettier-ignore
}

/** By how much the first ranks of each pair find more evidence among the first k than the second ones. */
export function compareRanks(
  pairs: readonly (readonly [readonly number[], readonly number[]])[],
  k: number,
): { readonly mean: number; readonly low: number; readonly high: number } {
  const differences = pairs.map(([first, second]) => first.map((rank, i) => Number(rank < k) - Number(second[i]! < k)));
  const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const random = createRandom(SEED);
  const samples = Array.from({ length: NUM_SAMPLES }, () =>
    meanOf(differences.map((list) => meanOf(list.map(() => list[random(list.length)]!)))),
  ).sort((a, b) => a - b);
  return {
    mean: meanOf(differences.map(meanOf)),
    low: samples[Math.floor(0.025 * NUM_SAMPLES)]!,
    high: samples[Math.floor(0.975 * NUM_SAMPLES)]!,
  };
}
