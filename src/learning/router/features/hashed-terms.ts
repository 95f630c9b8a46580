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
const MAX_WORDS = 300;

export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const match of text.toLowerCase().matchAll(/[\p{L}\p{N}']+/gu)) {
    words.push(match[0].slice(0, 40));
    if (words.length === MAX_WORDS) break;
  }
  return words;
}

/** Characters of a piece of a word, its ends marked. */
const PIECE = 4;
const [WORD_START, WORD_END] = [60, 62];

/** Of a piece of a word by position in `<word>`; apart from whole words by its start. */
function hashPiece(word: string, from: number): number {
  let hash = 0x9747b28c;
  for (let i = from; i < from + PIECE; i++) {
    const code = i === 0 ? WORD_START : i === word.length + 1 ? WORD_END : word.charCodeAt(i - 1);
    hash = Math.imul(hash ^ code, 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/**
 * How often each bucket occurs in a text. Words, pairs of neighbours, and the pieces of words, so that an inflection or a typing
 * error still meets its kin.
 */
export function countTerms(text: string, numBuckets: number): Map<number, number> {
  const counts = new Map<number, number>();
  const add = (hash: number): void => {
    const bucket = hash % numBuckets;
    counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
  };
  let previous = 0;
  for (const word of wordsOf(text)) {
    const hash = hashTerm(word);
    add(hash);
    if (previous !== 0) add((Math.imul(previous, 31) ^ (hash >>> 3) ^ (hash << 7)) >>> 0);
    previous = hash;
    if (word.length >= PIECE) for (let from = 0; from + PIECE <= word.length + 2; from++) add(hashPiece(word, from));
  }
  return counts;
}

/** Rare buckets weigh more; buckets that training never met (weight 0) are left out. */
export function weighTerms(counts: ReadonlyMap<number, number>, rarity: Float32Array): SparseVector {
  const buckets = new Int32Array(counts.size);
  let size = 0;
  for (const bucket of counts.keys()) if (rarity[bucket]! > 0) buckets[size++] = bucket;
  const indices = buckets.slice(0, size).sort();
  const values = new Float32Array(size);
  let squared = 0;
  for (let i = 0; i < size; i++) {
    values[i] = (1 + Math.log(counts.get(indices[i]!)!)) * rarity[indices[i]!]!;
    squared += values[i]! * values[i]!;
  }
  const scale = squared > 0 ? 1 / Math.sqrt(squared) : 0;
  for (let i = 0; i < size; i++) values[i]! *= scale;
  return { indices, values };
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
