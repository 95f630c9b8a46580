/** The index of the last value that is not greater; 0 if all are. */
export function lastAtMost(sorted: readonly number[], value: number): number {
  let [low, high] = [0, sorted.length];
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! <= value) low = middle;
    else high = middle;
  }
  return low;
}
