/** At this size the standard deviation of an estimated Jaccard index of 0.8 is 0.035. */
const MIN_HASH_SIZE = 128;
/** Texts that share words but not phrases are not duplicates. */
const SHINGLE_WORDS = 3;
/** Only the start of longer texts is used: a megabyte must not take a second. */
const MAX_WORDS = 4096;

/** Finalizer of MurmurHash3: every input bit reaches every output bit. */
function mix(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function hashWord(word: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 0x01000193);
  return mix(hash);
}

/** A hash of each run of three words, without case and punctuation; a shorter text is one run. */
export function shinglesOf(text: string): Set<number> {
  const words = (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).slice(0, MAX_WORDS).map(hashWord);
  const shingles = new Set<number>();
  for (let start = 0; start === 0 || start + SHINGLE_WORDS <= words.length; start++) {
    let hash = 0;
    for (const word of words.slice(start, start + SHINGLE_WORDS)) hash = mix(Math.imul(hash, 31) + word);
    shingles.add(hash);
  }
  return shingles;
}

/** The minimum of each of 128 hash functions; the share of equal values estimates the Jaccard index. */
export const minHash = (text: string): Uint32Array => signatureOf(shinglesOf(text));

function signatureOf(shingles: ReadonlySet<number>): Uint32Array {
  const signature = new Uint32Array(MIN_HASH_SIZE).fill(0xffffffff);
  for (const shingle of shingles) {
    for (let i = 0; i < MIN_HASH_SIZE; i++) {
      const hash = mix(shingle ^ Math.imul(i + 1, 0x9e3779b9));
      if (hash < signature[i]!) signature[i] = hash;
    }
  }
  return signature;
}

export function estimateJaccard(a: Uint32Array, b: Uint32Array): number {
  let numEqual = 0;
  for (let i = 0; i < MIN_HASH_SIZE; i++) if (a[i] === b[i]) numEqual++;
  return numEqual / MIN_HASH_SIZE;
}

/** A text to compare with many others. */
export interface ComparedText {
  readonly shingles: ReadonlySet<number>;
  signature: Uint32Array | null;
}

export const toCompared = (text: string): ComparedText => ({ shingles: shinglesOf(text), signature: null });

/** The estimated Jaccard index; most texts share no shingle, and need no signatures. */
export function jaccardOf(a: ComparedText, b: ComparedText): number {
  const [fewer, more] = a.shingles.size < b.shingles.size ? [a.shingles, b.shingles] : [b.shingles, a.shingles];
  let isShared = false;
  for (const shingle of fewer) isShared ||= more.has(shingle);
  if (!isShared) return 0;
  return estimateJaccard((a.signature ??= signatureOf(a.shingles)), (b.signature ??= signatureOf(b.shingles)));
}
