/** Longer words are not compared: the work grows with the product of both. */
const MAX_LENGTH = 200;

/** How many letters must be put in, left out, replaced or exchanged with their neighbour to make one word of the other. */
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

/** What somebody may have meant by a word: the closest first, at most three. Upper case does not count. */
export function nearest(word: string, candidates: Iterable<string>): string[] {
  const wanted = word.toLowerCase();
  if (wanted === '' || wanted.length > MAX_LENGTH) return [];
  const found: { candidate: string; distance: number }[] = [];
  for (const candidate of candidates) {
    if (candidate.length > MAX_LENGTH) continue;
    const distance = editDistance(wanted, candidate.toLowerCase());
    // A third of the letters may be wrong; of a word of two, one.
    const isClose = distance <= Math.max(1, Math.floor(Math.max(wanted.length, candidate.length) / 3));
    const isPart = wanted.length >= 3 && candidate.toLowerCase().includes(wanted);
    if (isClose || isPart) found.push({ candidate, distance });
  }
  return found
    .sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

/** ` (did you mean x or y?)`, or nothing. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const close = nearest(word, candidates);
  return close.length === 0 ? '' : ` (did you mean ${close.join(' or ')}?)`;
}
