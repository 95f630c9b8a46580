/** How many of the largest and of the smallest votes do not count: one of three, a quarter of more; none of two, where neither is a majority. */
export const numTrimmed = (numVotes: number): number => (numVotes < 3 ? 0 : Math.max(1, Math.floor(numVotes / 4)));

/** The mean without the largest and smallest votes; of three, the median. With at most `numTrimmed` liars it lies between honest votes. */
export function trimmedMean(votes: readonly number[]): number {
  const trim = numTrimmed(votes.length);
  const kept = votes.toSorted((a, b) => a - b).slice(trim, votes.length - trim);
  return kept.reduce((sum, vote) => sum + vote, 0) / kept.length;
}

export const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));
