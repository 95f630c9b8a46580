import { createJoinHeap } from './join-heap.ts';

/** Decides which neighbours join. A rule is a number chosen by the caller: a merge's rank or a token id. */
export interface MergeRules {
  /** The rule that joins symbols `left` and `right` (indexes into the merger's arrays), or -1. */
  find(left: number, right: number): number;
  /** Lower joins first; ties join from left to right. */
  priority(rule: number): number;
  /** The symbol that the join creates. */
  result(rule: number): number;
}

/**
 * Joins neighbouring symbols, best pair first, until no rule applies. Shared by BPE and SPM; a heap instead of repeated
 * scans, so that a word of a megabyte costs n log n.
 */
export interface Merger {
  /** Symbol i covers positions [starts[i], ends[i]) of the caller's text. Valid until the next `reset`. */
  symbols: Int32Array;
  starts: Int32Array;
  ends: Int32Array;
  /** Allocates `count` symbols; the caller then fills the three arrays. */
  reset(count: number): void;
  run(count: number, rules: MergeRules): void;
  /** Index of the symbol after `i`, or -1; symbol 0 is always the first. */
  next(i: number): number;
}

const INITIAL_CAPACITY = 256;
// Larger arrays are freed by the next small text: one huge text must not hold its working memory forever.
const MAX_KEPT_CAPACITY = 1 << 16;
const SWALLOWED = -2;

export function createMerger(): Merger {
  let nexts = new Int32Array(INITIAL_CAPACITY);
  let previous = new Int32Array(INITIAL_CAPACITY);
  const heap = createJoinHeap();

  const merger: Merger = {
    symbols: new Int32Array(INITIAL_CAPACITY),
    starts: new Int32Array(INITIAL_CAPACITY),
    ends: new Int32Array(INITIAL_CAPACITY),

    reset(count) {
      const capacity = merger.symbols.length;
      const isOversized = capacity > MAX_KEPT_CAPACITY && count <= MAX_KEPT_CAPACITY;
      if (count <= capacity && !isOversized) return;
      const newCapacity = isOversized ? Math.max(count, INITIAL_CAPACITY) : Math.max(count, capacity * 2);
      merger.symbols = new Int32Array(newCapacity);
      merger.starts = new Int32Array(newCapacity);
      merger.ends = new Int32Array(newCapacity);
      nexts = new Int32Array(newCapacity);
      previous = new Int32Array(newCapacity);
    },

    run(count, { find, priority, result }) {
      const { symbols, ends } = merger;
      for (let i = 0; i < count; i++) {
        nexts[i] = i + 1 < count ? i + 1 : -1;
        previous[i] = i - 1;
      }
      const tryJoin = (left: number, right: number): void => {
        const rule = find(left, right);
        if (rule >= 0) heap.push(priority(rule), left, ends[right]!, rule);
      };
      for (let i = 1; i < count; i++) tryJoin(i - 1, i);
      while (heap.pop()) {
        const { left, rightEnd } = heap;
        const right = nexts[left]!;
        // Stale: `left` has been joined or is the last symbol now, or its neighbour has changed.
        if (right < 0 || ends[right] !== rightEnd) continue;
        symbols[left] = result(heap.rule);
        ends[left] = rightEnd;
        const after = nexts[right]!;
        nexts[left] = after;
        nexts[right] = SWALLOWED;
        if (after >= 0) previous[after] = left;
        if (previous[left]! >= 0) tryJoin(previous[left]!, left);
        if (after >= 0) tryJoin(left, after);
      }
      heap.clear();
    },

    next: (i) => nexts[i]!,
  };
  return merger;
}
