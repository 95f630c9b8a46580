import type { KvPage, PageTier } from './types.ts';

/** A page as the pool sees it; read-only elsewhere. */
export type PageRecord = { -readonly [K in keyof KvPage]: KvPage[K] };

/** A slab with at least one page. */
export interface Slab {
  readonly id: number;
  readonly tier: PageTier;
  /** Maximum pages. */
  readonly capacity: number;
  /** Never emptied by moving: only float pages can use the tail slab. */
  readonly isTail: boolean;
  /** By slot. A slot held for packing has its future page. */
  readonly pages: (PageRecord | undefined)[];
  /** Freed slots, the last one on top; slots from `numTouched` on were never used. */
  readonly freeSlots: number[];
  numTouched: number;
  numUsed: number;
  /** Slots of open pack tickets; a slab with any is not emptied. */
  numPinned: number;
  /** Linked-list neighbours among slabs with equally many holes. */
  previous: Slab | undefined;
  next: Slab | undefined;
}

/** The slabs of one tier by hole count; among equals the most recently changed comes first. */
export interface SlabShelf {
  add(slab: Slab): void;
  /** Must be called before `numUsed` changes, because the hole count is the key. */
  remove(slab: Slab): void;
  /** The slab with the fewest holes but at least one. */
  fullest(except: Slab | null): Slab | undefined;
  /** The slab that needs the fewest moves to empty; skips tail and pinned slabs. */
  emptiest(): Slab | undefined;
  /** Every slab with the hole count it is filed under. */
  entries(): Iterable<readonly [number, Slab]>;
}

export function createSlabShelf(): SlabShelf {
  /** First slab per hole count. */
  const heads: (Slab | undefined)[] = [];
  // Lower bound of non-zero hole counts, so that a search seldom starts at 1.
  let lowest = 1;

  return {
    add(slab) {
      const holes = slab.capacity - slab.numUsed;
      while (heads.length <= holes) heads.push(undefined);
      const head = heads[holes];
      slab.previous = undefined;
      slab.next = head;
      if (head) head.previous = slab;
      heads[holes] = slab;
      if (holes > 0 && holes < lowest) lowest = holes;
    },
    remove(slab) {
      if (slab.previous) slab.previous.next = slab.next;
      else heads[slab.capacity - slab.numUsed] = slab.next;
      if (slab.next) slab.next.previous = slab.previous;
      slab.previous = slab.next = undefined;
    },
    fullest(except) {
      while (lowest < heads.length && !heads[lowest]) lowest++;
      for (let holes = lowest; holes < heads.length; holes++) {
        const slab = heads[holes] === except ? except?.next : heads[holes];
        if (slab) return slab;
      }
      return undefined;
    },
    emptiest() {
      for (let holes = heads.length - 1; holes >= 0; holes--) {
        for (let slab = heads[holes]; slab; slab = slab.next) if (!slab.isTail && slab.numPinned === 0) return slab;
      }
      return undefined;
    },
    *entries() {
      for (const [holes, head] of heads.entries()) for (let slab = head; slab; slab = slab.next) yield [holes, slab];
    },
  };
}
