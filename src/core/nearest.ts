/** Longer words are not compared: the work grows with the product of the lengths. */
const MAX_LENGTH = 200;

/** Optimal string alignment distance: insertions, deletions, replacements and transpositions. */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      row[j] = Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + cost);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) row[j] = Math.min(row[j]!, before[j - 2]! + 1);
    }
    before = previous;
    previous = row;
  }
  return previous[b.length]!;
}

/** Up to three candidates similar to `word`, nearest first; ignores case. */
export function nearest(word: string, candidates: Iterable<string>): string[] {
  const query = word.toLowerCase();
  if (query === '' || query.length > MAX_LENGTH) return [];
  const matches: { candidate: string; distance: number }[] = [];
  for (const candidate of candidates) {
    if (candidate.length > MAX_LENGTH) continue;
    const distance = editDistance(query, candidate.toLowerCase());
    // Up to a third of the letters may differ, at least one.
    const isClose = distance <= Math.max(1, Math.floor(Math.max(query.length, candidate.length) / 3));
    const isPart = query.length >= 3 && candidate.toLowerCase().includes(query);
    if (isClose || isPart) matches.push({ candidate, distance });
  }
  return matches
    .sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

/** ` (did you mean x or y?)`, or an empty string. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const matches = nearest(word, candidates);
  return matches.length === 0 ? '' : ` (did you mean ${matches.join(' or ')}?)`;
}
