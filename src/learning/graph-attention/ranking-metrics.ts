/** Indexes by score, the best first; of equal ones the earlier. */
export function orderOf(scores: ArrayLike<number>): number[] {
  return Array.from({ length: scores.length }, (_, i) => i).sort((a, b) => scores[b]! - scores[a]! || a - b);
}

/** 1 / place of the first that was used; 0 where none was. */
export function reciprocalRank(scores: ArrayLike<number>, used: readonly boolean[]): number {
  const place = orderOf(scores).findIndex((i) => used[i]);
  return place === -1 ? 0 : 1 / (place + 1);
}

/** Discounted gain of the first k, as a share of the best there could be; 0 where nothing was used. */
export function ndcg(scores: ArrayLike<number>, used: readonly boolean[], k: number): number {
  const gain = (isUsed: boolean | undefined, place: number): number => (isUsed ? 1 / Math.log2(place + 2) : 0);
  const sum = (flags: readonly (boolean | undefined)[]): number =>
    flags.slice(0, k).reduce((total, isUsed, place) => total + gain(isUsed, place), 0);
  const best = sum(used.toSorted((a, b) => Number(b) - Number(a)));
  return best === 0 ? 0 : sum(orderOf(scores).map((i) => used[i])) / best;
}
