import { assert } from '../core/errors.ts';
import type { SlabLayout } from './slab-layout.ts';
import { createSlabShelf, type PageRecord, type Slab, type SlabShelf } from './slab-shelf.ts';
import type { PagePoolOptions, PageTier } from './types.ts';

interface TierSlabs {
  readonly shelf: SlabShelf;
  /** Whole slabs, without the tail. */
  numSlabs: number;
  /** Whole slabs with a pinned slot. */
  numPinnedSlabs: number;
  /** Slots in use, including the tail's. */
  numUsed: number;
}

/** Tracks which slab holds which pages; references are the pool's. */
export interface SlabTable {
  readonly slabs: ReadonlyMap<number, Slab>;
  readonly tiers: Readonly<Record<PageTier, Readonly<TierSlabs>>>;
  readonly usedBytes: number;
  readonly numReservedSlabs: number;
  /** Freed slabs, and the first never used. */
  readonly freeSlabs: { readonly returned: readonly number[]; readonly firstFresh: number };
  /** Slots of the tier that `makeRoom` can provide. */
  numFreePlaces(tier: PageTier): number;
  /** Whole slabs that `makeSlabs` can provide. */
  numFreeSlabs(): number;
  /** Compacts the other tier until `count` slots are available. */
  makeRoom(tier: PageTier, count: number): void;
  /** Compacts pages until `count` whole slabs are free. */
  makeSlabs(count: number): void;
  pageAt(tier: PageTier, index: number): PageRecord | undefined;
  /** A slot for `page`; only after `makeRoom`. */
  take(tier: PageTier, page: PageRecord): number;
  give(tier: PageTier, index: number): void;
  pin(tier: PageTier, index: number): void;
  unpin(tier: PageTier, index: number): void;
  /** A whole slab for other data than pages; only after `makeSlabs`. */
  takeSlab(): number;
  giveSlab(slabId: number): void;
}

const TIERS: readonly PageTier[] = ['float', 'packed'];

export function createSlabTable(layout: SlabLayout, copyPage: PagePoolOptions['copyPage']): SlabTable {
  // Only slabs with pages: a pool of 2^26 pages costs nothing before it is used.
  const slabs = new Map<number, Slab>();
  const returned: number[] = [];
  let firstFresh = 0;
  let numReservedSlabs = 0;
  const newTier = (): TierSlabs => ({ shelf: createSlabShelf(), numSlabs: 0, numPinnedSlabs: 0, numUsed: 0 });
  const tiers: Record<PageTier, TierSlabs> = { float: newTier(), packed: newTier() };
  const tailPages: Record<PageTier, number> = { float: layout.tailPages, packed: 0 };

  const numEmptySlabs = (): number => returned.length + layout.numSlabs - firstFresh;

  /** Whole slabs the tier needs even after compaction. */
  function numNeededSlabs(tier: PageTier): number {
    const { numUsed, numPinnedSlabs } = tiers[tier];
    if (numUsed === 0) return 0;
    return Math.max(numPinnedSlabs, Math.ceil((numUsed - tailPages[tier]) / layout.tiers[tier].slabPages));
  }

  function slabAt(tier: PageTier, index: number): Slab | undefined {
    const slab = slabs.get(layout.tiers[tier].slabOf(index));
    return slab?.tier === tier ? slab : undefined;
  }

  function openSlab(tier: PageTier, id: number, capacity: number): Slab {
    const isTail = id === layout.numSlabs;
    if (!isTail) tiers[tier].numSlabs++;
    const slab: Slab = {
      id,
      tier,
      capacity,
      isTail,
      pages: [],
      freeSlots: [],
      numTouched: 0,
      numUsed: 0,
      numPinned: 0,
      previous: undefined,
      next: undefined,
    };
    slabs.set(id, slab);
    tiers[tier].shelf.add(slab);
    return slab;
  }

  function openTail(tier: PageTier): Slab | undefined {
    if (tailPages[tier] === 0 || slabs.has(layout.numSlabs)) return undefined;
    return openSlab(tier, layout.numSlabs, tailPages[tier]);
  }

  function openEmpty(tier: PageTier): Slab | undefined {
    if (numEmptySlabs() === 0) return undefined;
    return openSlab(tier, returned.pop() ?? firstFresh++, layout.tiers[tier].slabPages);
  }

  function setPlace(slab: Slab, page: PageRecord): number {
    const tier = tiers[slab.tier];
    const slot = slab.freeSlots.pop() ?? slab.numTouched++;
    tier.shelf.remove(slab);
    slab.pages[slot] = page;
    slab.numUsed++;
    tier.numUsed++;
    tier.shelf.add(slab);
    return layout.tiers[slab.tier].indexOf(slab.id, slot);
  }

  function clearPlace(slab: Slab, slot: number): void {
    const tier = tiers[slab.tier];
    tier.shelf.remove(slab);
    slab.pages[slot] = undefined;
    slab.freeSlots.push(slot);
    slab.numUsed--;
    tier.numUsed--;
    if (slab.numUsed > 0) {
      tier.shelf.add(slab);
      return;
    }
    slabs.delete(slab.id);
    if (slab.isTail) return;
    tier.numSlabs--;
    returned.push(slab.id);
  }

  function emptySlab(slab: Slab): void {
    const { shelf } = tiers[slab.tier];
    for (let slot = 0; slot < slab.numTouched; slot++) {
      const page = slab.pages[slot];
      if (!page) continue;
      const target = shelf.fullest(slab) ?? openTail(slab.tier);
      assert(target !== undefined, `no hole for ${slab.tier} page ${page.index} outside slab ${slab.id}`);
      const to = setPlace(target, page);
      try {
        copyPage(slab.tier, page.index, to);
      } catch (error) {
        clearPlace(target, layout.tiers[slab.tier].slotOf(to));
        throw error;
      }
      clearPlace(slab, slot);
      page.index = to;
    }
  }

  function emptySlabs(count: number, from: readonly PageTier[]): void {
    while (numEmptySlabs() < count) {
      const candidates = from
        .filter((tier) => tiers[tier].numSlabs > numNeededSlabs(tier))
        .map((tier) => tiers[tier].shelf.emptiest()!)
        .sort((a, b) => a.numUsed * layout.tiers[a.tier].pageBytes - b.numUsed * layout.tiers[b.tier].pageBytes);
      assert(candidates.length > 0, `${count} empty slabs requested, ${numEmptySlabs()} available`);
      emptySlab(candidates[0]!);
    }
  }

  const table: SlabTable = {
    slabs,
    tiers,
    get usedBytes() {
      const { numUsed } = tiers.float;
      const numFloatSlabs = numNeededSlabs('float');
      const needsTail =
        numUsed > numFloatSlabs * layout.tiers.float.slabPages || (slabs.get(layout.numSlabs)?.numPinned ?? 0) > 0;
      return (
        (numFloatSlabs + numNeededSlabs('packed') + numReservedSlabs) * layout.slabBytes +
        (needsTail ? layout.tailPages * layout.tiers.float.pageBytes : 0)
      );
    },
    get numReservedSlabs() {
      return numReservedSlabs;
    },
    get freeSlabs() {
      return { returned, firstFresh };
    },
    numFreePlaces(tier) {
      const others = numReservedSlabs + numNeededSlabs(tier === 'float' ? 'packed' : 'float');
      return (layout.numSlabs - others) * layout.tiers[tier].slabPages + tailPages[tier] - tiers[tier].numUsed;
    },
    numFreeSlabs: () => layout.numSlabs - numReservedSlabs - numNeededSlabs('float') - numNeededSlabs('packed'),
    makeRoom(tier, count) {
      const { slabPages } = layout.tiers[tier];
      const numHoles = tiers[tier].numSlabs * slabPages + tailPages[tier] - tiers[tier].numUsed;
      if (count <= numHoles) return;
      // Not from the same tier: all its holes will be filled.
      const from = TIERS.filter((other) => other !== tier);
      emptySlabs(Math.ceil((count - numHoles) / slabPages), from);
    },
    makeSlabs: (count) => emptySlabs(count, TIERS),
    pageAt: (tier, index) => slabAt(tier, index)?.pages[layout.tiers[tier].slotOf(index)],
    take(tier, page) {
      const slab = tiers[tier].shelf.fullest(null) ?? openEmpty(tier) ?? openTail(tier);
      assert(slab !== undefined, `no slot for a ${tier} page`);
      return setPlace(slab, page);
    },
    give(tier, index) {
      const slab = slabAt(tier, index);
      const slot = layout.tiers[tier].slotOf(index);
      assert(slab?.pages[slot] !== undefined, `${tier} page ${index} is already free`);
      clearPlace(slab, slot);
    },
    pin(tier, index) {
      const slab = slabAt(tier, index)!;
      if (slab.numPinned++ === 0 && !slab.isTail) tiers[tier].numPinnedSlabs++;
    },
    unpin(tier, index) {
      const slab = slabAt(tier, index)!;
      if (--slab.numPinned === 0 && !slab.isTail) tiers[tier].numPinnedSlabs--;
    },
    takeSlab() {
      assert(numEmptySlabs() > 0, 'no empty slab');
      numReservedSlabs++;
      return returned.pop() ?? firstFresh++;
    },
    giveSlab(slabId) {
      numReservedSlabs--;
      returned.push(slabId);
    },
  };
  return table;
}
