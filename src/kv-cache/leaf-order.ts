import type { CachedPage, RadixNode } from './radix-node.ts';

/**
 * Value of a page; must not fall with more tokens, more forks or a later use, so that no prefix is evicted before its
 * continuation.
 */
export type PageValue = (cached: PageHistory, numTokens: number, now: number) => number;
export type PageHistory = Pick<CachedPage, 'numForks' | 'lastUse'>;

/** Plain LRU. */
export const valueByRecency: PageValue = ({ lastUse }) => lastUse;

/**
 * tokens × log2(2 + forks) / age, the age in calls: the tokens saved by a hit, times its likelihood. A partly filled page takes
 * the memory of a whole one. Forks, not uses: every turn of a conversation uses all its pages again, but a conversation that
 * ended has no further use, while a system prompt or a document starts many. They count logarithmically, because yesterday's
 * hot prompt must leave some day.
 */
export const valueByForks: PageValue = ({ numForks, lastUse }, numTokens, now) =>
  (numTokens * Math.log2(2 + numForks)) / (now - lastUse + 1);

/** The eviction order, lowest first. */
export interface Rank {
  readonly isSession: boolean;
  readonly value: number;
  readonly lastUse: number;
}

export function rankPage(cached: CachedPage, value: number, sessionSince: number): Rank {
  return { isSession: isSessionPage(cached, sessionSince), value, lastUse: cached.lastUse };
}

/** A recently used session. Without expiry, abandoned conversations would fill the memory for ever. */
export function isSessionPage({ isSession, lastUse }: CachedPage, sessionSince: number): boolean {
  return isSession && lastUse >= sessionSince;
}

/**
 * Calls of `touch` and `insert`, one per computed page, until an unused session counts as ordinary: 160,000 tokens of
 * others.
 */
export const SESSION_CALLS = 10_000;

/**
 * Sessions last, then by value, then by last use. Pages equal in all three were last used by the same call, so they lie on one
 * path whose end goes first: the order is total and deterministic.
 */
export function compareRanks(a: Rank, b: Rank): number {
  if (a.isSession !== b.isSession) return a.isSession ? 1 : -1;
  return a.value - b.value || a.lastUse - b.lastUse;
}

/** A leaf that can lose its last page. */
export interface RankedLeaf extends Rank {
  readonly node: RadixNode;
  readonly namespace: string;
}

/** A heap of leaves, the next to be evicted on top. */
export interface LeafHeap<Leaf extends Rank> {
  push(leaf: Leaf): void;
  pop(): Leaf | undefined;
}

export function createLeafHeap<Leaf extends Rank>(): LeafHeap<Leaf> {
  const heap: Leaf[] = [];
  return {
    push(leaf) {
      let at = heap.length;
      while (at > 0) {
        const above = (at - 1) >> 1;
        if (compareRanks(heap[above]!, leaf) <= 0) break;
        heap[at] = heap[above]!;
        at = above;
      }
      heap[at] = leaf;
    },
    pop() {
      const last = heap.pop();
      const top = heap[0];
      if (last === undefined || top === undefined) return last;
      let at = 0;
      for (let below = 1; below < heap.length; below = 2 * at + 1) {
        if (below + 1 < heap.length && compareRanks(heap[below + 1]!, heap[below]!) < 0) below++;
        if (compareRanks(last, heap[below]!) <= 0) break;
        heap[at] = heap[below]!;
        at = below;
      }
      heap[at] = last;
      return top;
    },
  };
}
