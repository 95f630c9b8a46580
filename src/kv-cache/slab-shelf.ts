import type { KvPage, PageTier } from './types.ts';

/** A page as the pool sees it; to everyone else it is read-only. */
export type PageRecord = { -readonly [K in keyof KvPage]: KvPage[K] };

/** A slab with at least one page in it. */
export interface Slab {
  readonly id: number;
  readonly tier: PageTier;
  /** Pages that fit. */
  readonly capacity: number;
  /** Never emptied by moving: the tail slab is of no use to anything but float pages. */
  readonly isTail: boolean;
  /** By slot. A place that is held for packing has the page that will be in it. */
  readonly pages: (PageRecord | undefined)[];
  /** Slots given back, the last one on top; behind `numTouched` are those never used. */
  readonly freeSlots: number[];
  numTouched: number;
  numUsed: number;
  /** Places of open pack tickets; a slab with any is not emptied. */
  numPinned: number;
  /** Neighbours among the slabs with as many holes. */
  previous: Slab | undefined;
  next: Slab | undefined;
}

/** The slabs of one tier, by the number of their holes; among equals the one changed last comes first. */
export interface SlabShelf {
  add(slab: Slab): void;
  /** Must be called before `numUsed` changes: it says under which number the slab is found. */
  remove(slab: Slab): void;
  /** The slab with the fewest holes but at least one. */
  fullest(except: Slab | null): Slab | undefined;
  /** The slab that is emptied with the fewest moves; tail and pinned slabs are passed over. */
  emptiest(): Slab | undefined;
  /** Every slab with the number of holes it is filed under. */
  entries(): Iterable<readonly [number, Slab]>;
}

export function createSlabShelf(): SlabShelf {
  /** First slab of each number of holes. */
  const heads: (Slab | undefined)[] = [];
  // No slab has fewer holes, save none at all; so the search seldom starts at 1.
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
