import type { Use } from './types.ts';

/** Indices by descending score; ties keep their order. */
export function orderOf(scores: ArrayLike<number>): number[] {
  return Array.from({ length: scores.length }, (_, i) => i).sort((a, b) => scores[b]! - scores[a]! || a - b);
}

/** Use of the candidates by descending score; candidates of unknown use are left out. */
const judged = (scores: ArrayLike<number>, used: readonly Use[]): boolean[] =>
  orderOf(scores).flatMap((i) => used[i] ?? []);

/** 1 / rank of the first used candidate; 0 without one. */
export function reciprocalRank(scores: ArrayLike<number>, used: readonly Use[]): number {
  const place = judged(scores, used).indexOf(true);
  return place === -1 ? 0 : 1 / (place + 1);
}

/** Discounted gain of the first k, as a share of the best possible; 0 if nothing was used. */
export function ndcg(scores: ArrayLike<number>, used: readonly Use[], k: number): number {
  const gain = (isUsed: boolean, place: number): number => (isUsed ? 1 / Math.log2(place + 2) : 0);
  const sum = (flags: readonly boolean[]): number =>
    flags.slice(0, k).reduce((total, isUsed, place) => total + gain(isUsed, place), 0);
  const found = judged(scores, used);
  const best = sum(found.toSorted((a, b) => Number(b) - Number(a)));
  return best === 0 ? 0 : sum(found) / best;
}
