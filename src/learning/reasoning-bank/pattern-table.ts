import type { PatternWords } from './pattern.ts';

/** A pattern near a vector. */
export interface NearPattern {
  readonly pattern: PatternWords;
  readonly similarity: number;
}

/**
 * Patterns of one tenant and space, compact enough for the thread that serves requests: 96 bytes of signs find candidates, 8-bit
 * values rank them. A search among 2,500 takes 0.3 ms; the time grows with a twentieth of a microsecond for each.
 */
export interface PatternTable {
  readonly size: number;
  set(pattern: PatternWords, vector: Float32Array): void;
  has(id: string): boolean;
  delete(id: string): void;
  /** The nearest first, by cosine. */
  search(vector: Float32Array, k: number): readonly NearPattern[];
}

/** Signs of a rotated vector: the first 256 are compared with all patterns, the others with the best of them. */
const COARSE_WORDS = 8;
const FINE_WORDS = 16;
const NUM_BITS = 32 * (COARSE_WORDS + FINE_WORDS);
/** Few enough to rank all of them; the mean of so many is removed before signs are taken, because a common part has no angle. */
const RANK_ALL = 256;
/** Candidates after the first comparison: this share, at least so many. */
const COARSE_SHARE = 1 / 50;
const MIN_COARSE = 512;
/** Candidates that are ranked, and for each result. */
const MIN_RANKED = 48;
const RANKED_PER_RESULT = 8;
/** Products with 8-bit values of 8,192 dimensions stay below 2^31. */
const MAX_QUERY_CODE = 2047;
const SEED = 0x5eed;

/** Bits set in each byte of `word`. */
function countBytes(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return (bits + (bits >>> 4)) & 0x0f0f0f0f;
}

/** Bits that differ between `count` words of two arrays; at most 31 words fit into the bytes of the sum. */
function distance(a: Int32Array, from: number, b: Int32Array, start: number, count: number): number {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += countBytes(a[from + i]! ^ b[start + i]!);
  const pairs = (sum & 0x00ff00ff) + ((sum >>> 8) & 0x00ff00ff);
  return (pairs & 0xffff) + (pairs >>> 16);
}

/** Random signs and a fast Walsh-Hadamard transform: every value depends on all, so that its sign says something of the angle. */
function createSigns(dim: number): (vector: ArrayLike<number>, out: Int32Array) => void {
  const length = 2 ** Math.ceil(Math.log2(Math.max(dim, NUM_BITS)));
  const flips = new Float32Array(dim);
  let state = SEED;
  for (let i = 0; i < dim; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    flips[i] = state < 0 ? -1 : 1;
  }
  const values = new Float32Array(length);
  return (vector, out) => {
    values.fill(0);
    for (let i = 0; i < dim; i++) values[i] = vector[i]! * flips[i]!;
    for (let half = 1; half < length; half *= 2) {
      for (let block = 0; block < length; block += 2 * half) {
        for (let i = block; i < block + half; i++) {
          const x = values[i]!;
          const y = values[i + half]!;
          values[i] = x + y;
          values[i + half] = x - y;
        }
      }
    }
    out.fill(0);
    for (let i = 0; i < NUM_BITS; i++) if (values[i]! > 0) out[i >> 5]! |= 1 << (i & 31);
  };
}

/** Integers, because conversions to floats take three times as long. */
function dotCodes(query: Int16Array, codes: Int8Array, from: number, dim: number): number {
  let sum = 0;
  let other = 0;
  let i = 0;
  for (; i + 1 < dim; i += 2) {
    sum = (sum + Math.imul(query[i]!, codes[from + i]!)) | 0;
    other = (other + Math.imul(query[i + 1]!, codes[from + i + 1]!)) | 0;
  }
  return i < dim ? sum + other + query[i]! * codes[from + i]! : sum + other;
}

/** Largest distance that at least `count` of the distances counted in `histogram` do not exceed. */
function limitOf(histogram: Uint32Array, count: number): number {
  let limit = 0;
  for (let seen = histogram[0]!; seen < count && limit < histogram.length - 1;) seen += histogram[++limit]!;
  return limit;
}

export function createPatternTable(dim: number): PatternTable {
  const toSigns = createSigns(dim);
  let capacity = 256;
  let isCentered = false;
  let coarse = new Int32Array(capacity * COARSE_WORDS);
  let fine = new Int32Array(capacity * FINE_WORDS);
  let codes = new Int8Array(capacity * dim);
  let scales = new Float32Array(capacity);
  let distances = new Uint16Array(capacity);
  const patterns: PatternWords[] = [];
  const slots = new Map<string, number>();
  const signs = new Int32Array(COARSE_WORDS + FINE_WORDS);
  const histogram = new Uint32Array(NUM_BITS + 1);
  const query = new Int16Array(dim);
  const mean = new Float32Array(dim);
  const centered = new Float32Array(dim);

  function grow(): void {
    capacity *= 2;
    const copy = <T extends Int32Array | Int8Array | Float32Array>(next: T, before: T): T => {
      (next as Int32Array).set(before as Int32Array);
      return next;
    };
    coarse = copy(new Int32Array(capacity * COARSE_WORDS), coarse);
    fine = copy(new Int32Array(capacity * FINE_WORDS), fine);
    codes = copy(new Int8Array(capacity * dim), codes);
    scales = copy(new Float32Array(capacity), scales);
    distances = new Uint16Array(capacity);
  }

  function lengthOf(vector: Float32Array): number {
    let squares = 0;
    for (let i = 0; i < dim; i++) squares += vector[i]! * vector[i]!;
    return Math.sqrt(squares);
  }

  function write(slot: number, vector: Float32Array): void {
    let largest = 0;
    for (let i = 0; i < dim; i++) largest = Math.max(largest, Math.abs(vector[i]!));
    const step = largest / 127 || 1;
    for (let i = 0; i < dim; i++) codes[slot * dim + i] = Math.round(vector[i]! / step);
    scales[slot] = step / (lengthOf(vector) || 1);
    writeSigns(slot);
  }

  function writeSigns(slot: number): void {
    for (let i = 0; i < dim; i++) centered[i] = codes[slot * dim + i]! * scales[slot]! - mean[i]!;
    toSigns(centered, signs);
    coarse.set(signs.subarray(0, COARSE_WORDS), slot * COARSE_WORDS);
    fine.set(signs.subarray(COARSE_WORDS), slot * FINE_WORDS);
  }

  /** Once, when signs are about to be used. */
  function center(): void {
    for (let slot = 0; slot < patterns.length; slot++) {
      for (let i = 0; i < dim; i++) mean[i]! += (codes[slot * dim + i]! * scales[slot]!) / patterns.length;
    }
    for (let slot = 0; slot < patterns.length; slot++) writeSigns(slot);
    isCentered = true;
  }

  /** Rounds the query for `dotCodes`; returns the value of one step. */
  function round(vector: Float32Array): number {
    let largest = 0;
    for (let i = 0; i < dim; i++) largest = Math.max(largest, Math.abs(vector[i]!));
    const step = largest / MAX_QUERY_CODE || 1;
    for (let i = 0; i < dim; i++) query[i] = Math.round(vector[i]! / step);
    return step;
  }

  /** Slots to rank, by the signs. */
  function candidatesOf(vector: Float32Array, length: number, numRanked: number): readonly number[] {
    const size = patterns.length;
    if (size <= RANK_ALL) return Array.from({ length: size }, (_, slot) => slot);
    for (let i = 0; i < dim; i++) centered[i] = vector[i]! / length - mean[i]!;
    toSigns(centered, signs);
    histogram.fill(0);
    for (let slot = 0; slot < size; slot++) {
      histogram[(distances[slot] = distance(coarse, slot * COARSE_WORDS, signs, 0, COARSE_WORDS))]!++;
    }
    const nearest: number[] = [];
    const coarseLimit = limitOf(histogram, Math.max(MIN_COARSE, size * COARSE_SHARE));
    for (let slot = 0; slot < size; slot++) if (distances[slot]! <= coarseLimit) nearest.push(slot);
    histogram.fill(0);
    for (const slot of nearest) {
      distances[slot]! += distance(fine, slot * FINE_WORDS, signs, COARSE_WORDS, FINE_WORDS);
      histogram[distances[slot]!]!++;
    }
    const fineLimit = limitOf(histogram, numRanked);
    return nearest.filter((slot) => distances[slot]! <= fineLimit);
  }

  return {
    get size() {
      return patterns.length;
    },
    has: (id) => slots.has(id),
    set(pattern, vector) {
      let slot = slots.get(pattern.id);
      if (slot === undefined) {
        slot = patterns.length;
        if (slot === capacity) grow();
        slots.set(pattern.id, slot);
      }
      patterns[slot] = pattern;
      write(slot, vector);
      if (!isCentered && patterns.length > RANK_ALL) center();
    },
    delete(id) {
      const slot = slots.get(id);
      if (slot === undefined) return;
      slots.delete(id);
      const moved = patterns.pop()!;
      const last = patterns.length;
      if (slot === last) return;
      patterns[slot] = moved;
      slots.set(moved.id, slot);
      coarse.copyWithin(slot * COARSE_WORDS, last * COARSE_WORDS, (last + 1) * COARSE_WORDS);
      fine.copyWithin(slot * FINE_WORDS, last * FINE_WORDS, (last + 1) * FINE_WORDS);
      codes.copyWithin(slot * dim, last * dim, (last + 1) * dim);
      scales[slot] = scales[last]!;
    },
    search(vector, k) {
      const length = lengthOf(vector) || 1;
      const step = round(vector) / length;
      return candidatesOf(vector, length, Math.max(MIN_RANKED, RANKED_PER_RESULT * k))
        .map((slot) => {
          const similarity = dotCodes(query, codes, slot * dim, dim) * scales[slot]! * step;
          return { pattern: patterns[slot]!, similarity };
        })
        .sort((a, b) => b.similarity - a.similarity || (a.pattern.id < b.pattern.id ? -1 : 1))
        .slice(0, k);
    },
  };
}
