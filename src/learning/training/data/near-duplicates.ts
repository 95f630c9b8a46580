import { minHash, shinglesOf } from '../../../memory/search/min-hash.ts';
import type { DataLine, PromptText } from './records.ts';

/** Bands of four of the 128 minima: texts with a Jaccard index of 0.8 share one with a probability above 0.9999. */
const BAND_SIZE = 4;

/** A line that was removed, and the earlier one that it repeats. */
export interface Duplicate {
  readonly line: number;
  readonly of: number;
  /** Whether all of its texts are equal, not only similar. */
  readonly isExact: boolean;
}

export const promptText = (prompt: PromptText): string =>
  typeof prompt === 'string' ? prompt : prompt.map(({ role, content }) => `${role}: ${content}`).join('\n');

/** The texts of a line; another label or form is never a duplicate. */
function textsOf(line: DataLine): readonly string[] {
  const prompt = promptText(line.prompt);
  switch (line.form) {
    case 'answer':
      return [prompt, line.completion, line.correction ?? ''];
    case 'preference':
      return [prompt, line.chosen, line.rejected];
    case 'task':
      return [prompt, JSON.stringify(line.expected), JSON.stringify(line.schema)];
  }
}
const labelOf = (line: DataLine): string =>
  line.form === 'answer' ? `${line.form} ${line.thumbs} ${Math.sign(line.weight)}` : line.form;

interface Entry {
  readonly line: DataLine;
  readonly texts: readonly string[];
  readonly shingles: readonly ReadonlySet<number>[];
}

/** The exact Jaccard index. */
function jaccard(a: ReadonlySet<number>, b: ReadonlySet<number>): number {
  let numShared = 0;
  for (const shingle of a) if (b.has(shingle)) numShared++;
  return numShared / (a.size + b.size - numShared);
}

/**
 * Keeps the first of lines whose texts are all similar: a Jaccard index of word trigrams of at least `threshold`. Candidates share a band
 * of MinHash values; each is then compared exactly.
 */
export function removeNearDuplicates(
  lines: readonly DataLine[],
  threshold: number,
): { readonly kept: readonly DataLine[]; readonly duplicates: readonly Duplicate[] } {
  const kept: DataLine[] = [];
  const duplicates: Duplicate[] = [];
  const buckets = new Map<string, Entry[]>();
  for (const line of lines) {
    const texts = textsOf(line);
    const entry: Entry = { line, texts, shingles: texts.map(shinglesOf) };
    const keys = bandsOf(texts.join('\n'), labelOf(line));
    const candidates = new Set(keys.flatMap((key) => buckets.get(key) ?? []));
    const isSimilar = (other: Entry): boolean =>
      entry.shingles.every(
        (shingles, i) =>
          texts[i] === other.texts[i] ||
          // Texts without letters and digits have no shingles of their own.
          (/[\p{L}\p{N}]/u.test(texts[i]!) && jaccard(shingles, other.shingles[i]!) >= threshold),
      );
    const original = [...candidates].find(isSimilar);
    if (original !== undefined) {
      const isExact = texts.every((text, i) => text === original.texts[i]);
      duplicates.push({ line: line.line, of: original.line.line, isExact });
      continue;
    }
    kept.push(line);
    for (const key of keys) {
      const bucket = buckets.get(key);
      if (bucket === undefined) buckets.set(key, [entry]);
      else bucket.push(entry);
    }
  }
  return { kept, duplicates };
}

function bandsOf(text: string, label: string): string[] {
  const signature = minHash(text);
  const keys: string[] = [];
  for (let start = 0; start < signature.length; start += BAND_SIZE) {
    keys.push(`${label} ${start} ${signature.subarray(start, start + BAND_SIZE).join(' ')}`);
  }
  return keys;
}
