import { assert } from '../core/errors.ts';
import type { SlabLayout } from './slab-layout.ts';
import type { Slab } from './slab-shelf.ts';
import type { SlabTable } from './slab-table.ts';
import type { KvPage, PackTicket, PageTier, Reservation } from './types.ts';

function checkEqual(what: string, has: number, recounted: number): void {
  assert(has === recounted, `${what}: ${has} recorded, ${recounted} counted`);
}

/** Throws unless each live page has exactly the references held by `owners` and open tickets, and no other page has any. */
export function checkReferences(
  table: SlabTable,
  owners: Iterable<readonly KvPage[]>,
  tickets: Iterable<PackTicket>,
): void {
  const counts = new Map<KvPage, number>();
  const count = (page: KvPage): void => void counts.set(page, (counts.get(page) ?? 0) + 1);
  for (const pages of owners) pages.forEach(count);
  for (const { pages } of tickets) pages.forEach(count);
  for (const slab of table.slabs.values()) {
    for (const page of slab.pages) {
      if (!page) continue;
      checkEqual(`references to ${page.tier} page ${page.index}`, page.numRefs, counts.get(page) ?? 0);
    }
  }
  for (const page of counts.keys()) {
    const isThere = table.pageAt(page.tier, page.index) === page;
    assert(isThere, `${page.tier} page ${page.index} has an owner and ${page.numRefs} references, but no slot`);
  }
}

/** Throws unless every slab has one kind and all counters match the slots. */
export function checkSlabs(
  layout: SlabLayout,
  table: SlabTable,
  tickets: Iterable<PackTicket>,
  reservations: Iterable<Reservation>,
): void {
  const held = heldPlaces(layout, table, tickets);
  const sums: Record<PageTier, { numSlabs: number; numPinnedSlabs: number; numUsed: number }> = {
    float: { numSlabs: 0, numPinnedSlabs: 0, numUsed: 0 },
    packed: { numSlabs: 0, numPinnedSlabs: 0, numUsed: 0 },
  };
  for (const [id, slab] of table.slabs) {
    checkEqual('id of a slab', slab.id, id);
    checkPlaces(layout, slab, held.targets);
    checkEqual(`pinned slots of slab ${id}`, slab.numPinned, held.numPinned.get(id) ?? 0);
    const sum = sums[slab.tier];
    sum.numUsed += slab.numUsed;
    if (slab.isTail) continue;
    sum.numSlabs++;
    if (slab.numPinned > 0) sum.numPinnedSlabs++;
  }
  for (const tier of ['float', 'packed'] as const) {
    for (const key of ['numSlabs', 'numPinnedSlabs', 'numUsed'] as const) {
      checkEqual(`${key} of the ${tier} tier`, table.tiers[tier][key], sums[tier][key]);
    }
  }
  checkShelves(table);
  checkSlabIds(layout, table, reservations);
}

/** A slab filed under a wrong hole count would be overfilled, or never found again. */
function checkShelves(table: SlabTable): void {
  let numFiled = 0;
  for (const tier of ['float', 'packed'] as const) {
    for (const [holes, slab] of table.tiers[tier].shelf.entries()) {
      const isKnown = slab.tier === tier && table.slabs.get(slab.id) === slab;
      assert(isKnown, `slab ${slab.id} is filed in the ${tier} tier but does not belong to it`);
      checkEqual(`holes of slab ${slab.id}`, holes, slab.capacity - slab.numUsed);
      numFiled++;
    }
  }
  checkEqual('filed slabs', numFiled, table.slabs.size);
}

/** Slots of open tickets: the count per slab, and the page each packed slot is held for. */
function heldPlaces(layout: SlabLayout, table: SlabTable, tickets: Iterable<PackTicket>) {
  const numPinned = new Map<number, number>();
  const targets = new Map<number, KvPage>();
  const pin = (slabId: number): void => void numPinned.set(slabId, (numPinned.get(slabId) ?? 0) + 1);
  for (const { pages, moves } of tickets) {
    moves.forEach(({ from, to }, i) => {
      const page = pages[i]!;
      const isThere = page.tier === 'float' && page.index === from && table.pageAt('packed', to) === page;
      assert(isThere, `float page ${from}, being packed to ${to}, is now ${page.tier} page ${page.index}`);
      targets.set(to, page);
      pin(layout.tiers.float.slabOf(from));
      pin(layout.tiers.packed.slabOf(to));
    });
  }
  return { numPinned, targets };
}

function checkPlaces(layout: SlabLayout, slab: Slab, targets: ReadonlyMap<number, KvPage>): void {
  const { id, tier, pages, numTouched, capacity } = slab;
  const free = new Set(slab.freeSlots);
  checkEqual(`free slots of slab ${id}`, slab.freeSlots.length, free.size);
  assert(numTouched <= capacity, `slab ${id} for ${capacity} pages has used ${numTouched} slots`);
  let numUsed = 0;
  for (let slot = 0; slot < numTouched; slot++) {
    const index = layout.tiers[tier].indexOf(id, slot);
    const page = pages[slot];
    assert((page === undefined) === free.has(slot), `${tier} slot ${index} is both free and taken, or neither`);
    if (!page) continue;
    numUsed++;
    const isHere = page.tier === tier && page.index === index;
    const isTarget = tier === 'packed' && targets.get(index) === page;
    assert(isHere || isTarget, `${tier} slot ${index} holds ${page.tier} page ${page.index}`);
  }
  checkEqual(`pages of slab ${id}`, slab.numUsed, numUsed);
  assert(numUsed > 0, `slab ${id} is empty but not free`);
}

/** Each whole slab appears exactly once: with pages, reserved, freed or never used. */
function checkSlabIds(layout: SlabLayout, table: SlabTable, reservations: Iterable<Reservation>): void {
  const { returned, firstFresh } = table.freeSlabs;
  const reserved = [...reservations].flatMap(({ slabs }) => slabs.map(({ offset }) => offset / layout.slabBytes));
  checkEqual('reserved slabs', table.numReservedSlabs, reserved.length);
  const seen = new Set<number>();
  for (const id of [...table.slabs.keys(), ...reserved, ...returned]) {
    assert(!seen.has(id), `slab ${id} is in two states at once`);
    seen.add(id);
    assert(
      id < firstFresh || id === layout.numSlabs,
      `slab ${id} is in use, but slabs from ${firstFresh} on were never used`,
    );
  }
  seen.delete(layout.numSlabs); // the tail slab, used or not
  checkEqual('slabs ever used', firstFresh, seen.size);
}
