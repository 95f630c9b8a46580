import type { SparseVector } from '../types.ts';

/** FNV-1a with a finaliser: its low bits alone are poor for short words. */
export function hashTerm(term: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < term.length; i++) hash = Math.imul(hash ^ term.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Longer texts are cut: a router must answer in microseconds. */
const MAX_WORDS = 400;

export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const match of text.toLowerCase().matchAll(/[\p{L}\p{N}']+/gu)) {
    words.push(match[0].slice(0, 40));
    if (words.length === MAX_WORDS) break;
  }
  return words;
}

/** Words, pairs of neighbours, and the pieces of words, so that an inflection or a typing error still meets its kin. */
function* termsOf(text: string): Iterable<string> {
  const words = wordsOf(text);
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    yield word;
    if (i + 1 < words.length) yield `${word} ${words[i + 1]!}`;
    if (word.length < 4) continue;
    const padded = `<${word}>`;
    for (let at = 0; at + 4 <= padded.length; at++) yield `#${padded.slice(at, at + 4)}`;
  }
}

/** How often each bucket occurs in a text. */
export function countTerms(text: string, numBuckets: number): Map<number, number> {
  const counts = new Map<number, number>();
  for (const term of termsOf(text)) {
    const bucket = hashTerm(term) % numBuckets;
    counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
  }
  return counts;
}

/** Rare buckets weigh more; buckets that training never met (weight 0) are left out. */
export function weighTerms(counts: ReadonlyMap<number, number>, rarity: Float32Array): SparseVector {
  const known = [...counts].filter(([bucket]) => rarity[bucket]! > 0).sort(([a], [b]) => a - b);
  const values = Float32Array.from(known, ([bucket, count]) => (1 + Math.log(count)) * rarity[bucket]!);
  let squared = 0;
  for (const value of values) squared += value * value;
  const scale = squared > 0 ? 1 / Math.sqrt(squared) : 0;
  for (let i = 0; i < values.length; i++) values[i]! *= scale;
  return { indices: Int32Array.from(known, ([bucket]) => bucket), values };
}

/** log(texts / texts with the bucket); 0 for a bucket in fewer than two texts, which can tell nothing about a third. */
export function fitRarity(texts: readonly ReadonlyMap<number, number>[], numBuckets: number): Float32Array {
  const seen = new Float32Array(numBuckets);
  for (const counts of texts) for (const bucket of counts.keys()) seen[bucket]! += 1;
  return seen.map((count) => (count < 2 ? 0 : Math.log((1 + texts.length) / count)));
}

export function dotSparse(a: SparseVector, dense: ArrayLike<number>, offset = 0): number {
  let sum = 0;
  for (let i = 0; i < a.indices.length; i++) sum += a.values[i]! * dense[offset + a.indices[i]!]!;
  return sum;
}
