import type { PatternWords } from './pattern.ts';
import { createSignTable } from './sign-table.ts';

/** A pattern near a vector. */
export interface NearPattern {
  readonly pattern: PatternWords;
  readonly similarity: number;
}

/**
 * Patterns of one tenant and space, compact enough for the thread that serves requests: 96 bytes of signs find candidates, 8-bit
 * values rank them. A search among 2,500 takes 0.07 ms, among 100,000 0.8 ms.
 */
export interface PatternTable {
  readonly size: number;
  set(pattern: PatternWords, vector: Float32Array): void;
  has(id: string): boolean;
  delete(id: string): void;
  /** The nearest first, by cosine. */
  search(vector: Float32Array, k: number): readonly NearPattern[];
}

/** Few enough to rank all of them; the mean of so many is removed before signs are taken, because a common part has no angle. */
const RANK_ALL = 256;
/** Candidates after the comparison of coarse signs: this share, at least so many. */
const COARSE_SHARE = 1 / 50;
const MIN_COARSE = 512;
/** Candidates that are ranked, and for each result. */
const MIN_RANKED = 48;
const RANKED_PER_RESULT = 8;
/** Products with 8-bit values of 8,192 dimensions stay below 2^31. */
const MAX_QUERY_CODE = 2047;
const SEED = 0x5eed;

/** Random signs, so that every value of the transform depends on all of a vector, and its sign says something of the angle. */
function createFlips(dim: number): Float32Array {
  let state = SEED;
  return Float32Array.from({ length: dim }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state < 0 ? -1 : 1;
  });
}

/** Writes the vector as integers from -`most` to `most`; returns the value of one step, and the length. */
function round(vector: Float32Array, most: number, out: Int8Array | Int16Array, from: number) {
  let largest = 0;
  let squares = 0;
  for (let i = 0; i < vector.length; i++) {
    const value = vector[i]!;
    squares += value * value;
    if (value > largest) largest = value;
    else if (-value > largest) largest = -value;
  }
  const step = largest / most || 1;
  const perStep = 1 / step;
  // Positive before the fraction is cut off: `Math.round` takes four times as long.
  const shift = most + 1;
  for (let i = 0; i < vector.length; i++) out[from + i] = ((vector[i]! * perStep + shift + 0.5) | 0) - shift;
  return { step, length: Math.sqrt(squares) || 1 };
}

export function createPatternTable(dim: number): PatternTable {
  const table = createSignTable(dim, RANK_ALL);
  const flips = createFlips(dim);
  const patterns: PatternWords[] = [];
  const slots = new Map<string, number>();
  const mean = new Float32Array(dim);
  let isCentered = false;

  function write(slot: number, vector: Float32Array): void {
    const { codes, scales, rowLength } = table.columns;
    const { step, length } = round(vector, 127, codes, slot * rowLength);
    scales[slot] = step / length;
    writeSigns(slot);
  }

  function writeSigns(slot: number): void {
    const { values, codes, scales, rowLength } = table.columns;
    values.fill(0, dim);
    for (let i = 0; i < dim; i++) values[i] = (codes[slot * rowLength + i]! * scales[slot]! - mean[i]!) * flips[i]!;
    table.setSigns(slot);
  }

  /** Once, when signs are about to be used. */
  function center(): void {
    const { codes, scales, rowLength } = table.columns;
    for (let slot = 0; slot < patterns.length; slot++) {
      const share = scales[slot]! / patterns.length;
      for (let i = 0; i < dim; i++) mean[i]! += codes[slot * rowLength + i]! * share;
    }
    for (let slot = 0; slot < patterns.length; slot++) writeSigns(slot);
    isCentered = true;
  }

  /** Writes the slots to rank to `slots`; returns their number. */
  function findCandidates(vector: Float32Array, length: number, numRanked: number): number {
    const numRows = patterns.length;
    const { values, slots: candidates } = table.columns;
    if (numRows <= RANK_ALL) {
      for (let slot = 0; slot < numRows; slot++) candidates[slot] = slot;
      return numRows;
    }
    values.fill(0, dim);
    for (let i = 0; i < dim; i++) values[i] = (vector[i]! / length - mean[i]!) * flips[i]!;
    return table.findNear({ numRows, numCoarse: Math.max(MIN_COARSE, numRows * COARSE_SHARE), numRanked });
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
        if (slot === table.capacity) table.grow();
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
      table.copyRow(last, slot);
    },
    search(vector, k) {
      const { query, slots: candidates, scores } = table.columns;
      const { step, length } = round(vector, MAX_QUERY_CODE, query, 0);
      const count = findCandidates(vector, length, Math.max(MIN_RANKED, RANKED_PER_RESULT * k));
      table.rank(count);
      const nearest: NearPattern[] = [];
      for (let i = 0; i < count; i++) {
        const similarity = (scores[i]! * step) / length;
        if (nearest.length === k && similarity < nearest[k - 1]!.similarity) continue;
        insert(nearest, { pattern: patterns[candidates[i]!]!, similarity });
        if (nearest.length > k) nearest.pop();
      }
      return nearest;
    },
  };
}

/** Into a list in order: the most similar first, equal ones by their id. */
function insert(list: NearPattern[], one: NearPattern): void {
  let at = list.length;
  for (; at > 0; at--) {
    const { similarity, pattern } = list[at - 1]!;
    if (similarity > one.similarity || (similarity === one.similarity && pattern.id < one.pattern.id)) break;
    list[at] = list[at - 1]!;
  }
  list[at] = one;
}
