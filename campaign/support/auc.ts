/** The chance that a value of `positives` is below one of `negatives` (ties count half): 0.5 means that they cannot be told apart. */
export function aucBelow(positives: readonly number[], negatives: readonly number[]): number {
  const sorted = negatives.toSorted((a, b) => a - b);
  const countBelow = (value: number, isInclusive: boolean): number => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isInclusive ? sorted[middle]! <= value : sorted[middle]! < value) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  let sum = 0;
  for (const value of positives) {
    const below = countBelow(value, false);
    const equal = countBelow(value, true) - below;
    sum += sorted.length - below - equal + equal / 2;
  }
  return sum / (positives.length * sorted.length);
}
