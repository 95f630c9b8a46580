/** A part of a text. */
interface TextRange {
  readonly start: number;
  readonly end: number;
}

const WORD = /[\p{L}\p{N}]+/gu;
/** Sentences and lines. */
const PART = /[^\n.!?。！？]*(?:[.!?。！？]+["')\]»”]*\s*|\n+|$)/gy;

const wordsOf = (text: string): string[] => text.toLowerCase().match(WORD) ?? [];

/** Words of the question count more the rarer they are in the text: common ones occur everywhere. */
function scoreParts(parts: readonly string[], query: string): number[] {
  const numParts = new Map<string, number>();
  const words = parts.map((part) => new Set(wordsOf(part)));
  for (const set of words) for (const word of set) numParts.set(word, (numParts.get(word) ?? 0) + 1);
  const wanted = [...new Set(wordsOf(query))].filter((word) => numParts.has(word));
  return words.map((set) =>
    wanted.reduce((sum, word) => sum + (set.has(word) ? Math.log(1 + parts.length / numParts.get(word)!) : 0), 0),
  );
}

/** The largest end for which the text from `start` fits; `start` if none does. */
function longestEnd(text: string, start: number, limit: number, fits: (text: string) => boolean): number {
  let [low, high] = [start, limit];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(text.slice(start, middle))) low = middle;
    else high = middle - 1;
  }
  // Not inside a surrogate pair.
  return /[\uD800-\uDBFF]$/.test(text.slice(start, low)) ? low - 1 : low;
}

/**
 * The sentences around the one that has most of the question's words, as many as fit. Without shared words, the beginning. Null:
 * not even a part of one sentence fits.
 */
export function cutToBest(text: string, query: string, fits: (text: string) => boolean): TextRange | null {
  const parts = [...text.matchAll(PART)]
    .filter(([part]) => part.trim() !== '')
    .map(({ index, 0: part }) => ({ start: index, end: index + part.length, part }));
  if (parts.length === 0) return null;
  const scores = scoreParts(parts.map(({ part }) => part), query); // prettier-ignore
  const best = scores.indexOf(Math.max(...scores.slice(0, 100_000)));
  const { start: from, end: to } = parts[best]!;
  if (!fits(text.slice(from, to).trimEnd())) {
    const end = longestEnd(text, from, to, fits);
    return end > from ? { start: from, end } : null;
  }
  let [first, last] = [best, best];
  const fitsFrom = (a: number, b: number): boolean => fits(text.slice(parts[a]!.start, parts[b]!.end).trimEnd());
  // The sentences after it explain more often than those before.
  for (let isGrowing = true; isGrowing;) {
    isGrowing = false;
    if (last + 1 < parts.length && fitsFrom(first, last + 1)) {
      last++;
      isGrowing = true;
    }
    if (first > 0 && fitsFrom(first - 1, last)) {
      first--;
      isGrowing = true;
    }
  }
  const start = parts[first]!.start;
  return { start, end: start + text.slice(start, parts[last]!.end).trimEnd().length };
}
