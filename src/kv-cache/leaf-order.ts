import type { CachedPage, RadixNode } from './radix-node.ts';

/** What a page is worth; never less for more tokens, more uses or a later use, so that no beginning goes before its end. */
export type PageValue = (cached: CachedPage, numTokens: number, now: number) => number;

/**
 * tokens × log2(2 + uses) / age, the age in calls: what keeping the page saves when it is asked for, times how likely that is
 * soon. A partly filled page takes the room of a whole one for fewer tokens. Uses count by their logarithm: the first shows
 * that others share the page, the hundredth adds little, and a prompt that was hot yesterday must leave some day. Found with
 * `npm run bench -- prefix-trace`: 0.4 to 1.7 points above plain LRU with room for 25 to 75 % of all pages, 1.3 below it with
 * 10 %; ordering by uses first loses 5 points at 25 %.
 */
export const valueOfPage: PageValue = ({ numUses, lastUse }, numTokens, now) =>
  (numTokens * Math.log2(2 + numUses)) / (now - lastUse + 1);

/** What pages are ordered by, the first to be evicted first. */
export interface Rank {
  readonly isSession: boolean;
  readonly value: number;
  readonly lastUse: number;
}

export function rankPage(cached: CachedPage, value: number, sessionSince: number): Rank {
  return { isSession: isSessionPage(cached, sessionSince), value, lastUse: cached.lastUse };
}

/**
 * A conversation that was used since. Without an end to it, conversations that nobody goes on with would push everything
 * else out of memory for ever.
 */
export function isSessionPage({ isSession, lastUse }: CachedPage, sessionSince: number): boolean {
  return isSession && lastUse >= sessionSince;
}

/** Calls of `touch` and `insert`, one for each page that is computed, after which a session counts as left: 160 000 tokens of others. */
export const SESSION_CALLS = 10_000;

/**
 * Sessions last, then by value, then by last use. Pages that are equal in all three were used last by the same call, so they
 * lie on one path, and the end of it goes first: the order is total, and the same in every run.
 */
export function compareRanks(a: Rank, b: Rank): number {
  if (a.isSession !== b.isSession) return a.isSession ? 1 : -1;
  return a.value - b.value || a.lastUse - b.lastUse;
}

/** A leaf that could lose its last page. */
export interface RankedLeaf extends Rank {
  readonly node: RadixNode;
  readonly namespace: string;
}

/** Leaves, the first to be evicted on top. */
export interface LeafHeap {
  push(leaf: RankedLeaf): void;
  pop(): RankedLeaf | undefined;
}

export function createLeafHeap(): LeafHeap {
  const heap: RankedLeaf[] = [];
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
      const top = heap[0];
      const last = heap.pop();
      if (top === undefined || last === undefined || heap.length === 0) return top;
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
