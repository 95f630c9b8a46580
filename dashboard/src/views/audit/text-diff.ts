/** A part of a text: in both texts, only in the first, or only in the second. */
export interface DiffPart {
  readonly side: 'both' | 'first' | 'second';
  readonly text: string;
}

/** Cells of the comparison table, 16 MB: longer differing parts are not divided into words. */
const MAX_CELLS = 4_000_000;

/** Compares two texts word by word; the parts of a side together are its text. */
export function diffWords(first: string, second: string): DiffPart[] {
  const [a, b] = [wordsOf(first), wordsOf(second)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  return joinParts([
    { side: 'both', text: a.slice(0, start).join('') },
    ...diffMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    { side: 'both', text: a.slice(a.length - end).join('') },
  ]);
}

/** Words with the white space after them. */
const wordsOf = (text: string): string[] => text.match(/\S+\s*|\s+/gu) ?? [];

/** By the longest common subsequence. */
function diffMiddle(a: readonly string[], b: readonly string[]): DiffPart[] {
  const width = b.length + 1;
  if (a.length * width > MAX_CELLS) {
    return [
      { side: 'first', text: a.join('') },
      { side: 'second', text: b.join('') },
    ];
  }
  // lengths[i * width + j]: of the longest common subsequence of a from i on and b from j on.
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
    }
  }
  const parts: DiffPart[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      parts.push({ side: 'both', text: a[i]! });
      [i, j] = [i + 1, j + 1];
    } else if (j === b.length || (i < a.length && lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!)) {
      parts.push({ side: 'first', text: a[i++]! });
    } else parts.push({ side: 'second', text: b[j++]! });
  }
  return parts;
}

/** Joins neighbours of the same side. */
function joinParts(parts: readonly DiffPart[]): DiffPart[] {
  const joined: DiffPart[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (part.text === '') continue;
    if (last?.side === part.side) joined[joined.length - 1] = { ...part, text: last.text + part.text };
    else joined.push(part);
  }
  return joined;
}
