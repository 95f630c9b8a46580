import { assert, RuvLLMError } from '../core/errors.ts';
import { checkReferences, checkSlabs } from './pool-integrity.ts';
import { createSlabLayout } from './slab-layout.ts';
import type { PageRecord } from './slab-shelf.ts';
import { createSlabTable } from './slab-table.ts';
import type { KvPage, PackTicket, PagePool, PagePoolOptions, PageTier, Reservation } from './types.ts';

const isCount = (count: number): boolean => Number.isSafeInteger(count) && count >= 0;

/** Creates a pool with all slabs empty. */
export function createUnifiedPool(options: PagePoolOptions): PagePool {
  const layout = createSlabLayout(options);
  const table = createSlabTable(layout, options.copyPage);
  const tickets = new Set<PackTicket>();
  /** Pages of open tickets: the ticket holds one reference to each. */
  const packing = new Set<KvPage>();
  const reservations = new Set<Reservation>();
  let peakBytes = 0;

  const notePeak = (): void => {
    peakBytes = Math.max(peakBytes, table.usedBytes);
  };

  /** The mutable page; throws if only a pack ticket refers to it. */
  function recordOf(page: KvPage, what: string): PageRecord {
    const isLive = table.pageAt(page.tier, page.index) === page && page.numRefs > (packing.has(page) ? 1 : 0);
    assert(isLive, `${what} of ${page.tier} page ${page.index}, which is not in use`);
    return page as PageRecord;
  }

  function dropReference(page: PageRecord): void {
    if (--page.numRefs > 0) return;
    table.give(page.tier, page.index);
    options.onFree?.(page);
  }

  function closeTicket(ticket: PackTicket, what: string): void {
    assert(tickets.delete(ticket), `${what} of ${ticket.pages.length} pages whose ticket is not open`);
    ticket.moves.forEach(({ from, to }, i) => {
      packing.delete(ticket.pages[i]!);
      table.unpin('float', from);
      table.unpin('packed', to);
    });
  }

  const numSlabsFor = (sizeBytes: number): number => Math.ceil(sizeBytes / layout.slabBytes);

  const pool: PagePool = {
    budgetBytes: layout.budgetBytes,
    numSlabs: layout.numSlabs,
    slabPages: { float: layout.tiers.float.slabPages, packed: layout.tiers.packed.slabPages },
    get usedBytes() {
      return table.usedBytes;
    },
    get peakBytes() {
      return peakBytes;
    },
    // Packed slots of open tickets are taken, but are no pages yet.
    numPages: (tier) => table.tiers[tier].numUsed - (tier === 'packed' ? packing.size : 0),
    numFreePages: (tier) => table.numFreePlaces(tier),
    canAllocate: (tier, count) => isCount(count) && count <= table.numFreePlaces(tier),
    allocate(tier, count) {
      assert(isCount(count), `${count} KV pages requested`);
      if (!pool.canAllocate(tier, count)) throw noPages(tier, count);
      table.makeRoom(tier, count);
      const pages: KvPage[] = [];
      for (let i = 0; i < count; i++) {
        const page: PageRecord = { tier, index: -1, numRefs: 1 };
        page.index = table.take(tier, page);
        pages.push(page);
      }
      notePeak();
      return pages;
    },
    retain(page) {
      recordOf(page, 'retain').numRefs++;
    },
    release(page) {
      dropReference(recordOf(page, 'release'));
    },
    beginPack(pages) {
      assert(new Set(pages).size === pages.length, `a page is listed twice among ${pages.length} pages to pack`);
      const records = pages.map((page) => {
        const record = recordOf(page, 'pack');
        assert(page.tier === 'float', `pack of page ${page.index}, which is already packed`);
        assert(!packing.has(page), `pack of float page ${page.index}, which is being packed`);
        return record;
      });
      if (!pool.canAllocate('packed', pages.length)) return null;
      // First, because it may move the pages. Then they stay in place until the ticket ends.
      table.makeRoom('packed', pages.length);
      const moves = records.map((page) => {
        const to = table.take('packed', page);
        table.pin('float', page.index);
        table.pin('packed', to);
        page.numRefs++;
        packing.add(page);
        return { from: page.index, to };
      });
      const ticket: PackTicket = { pages: [...pages], moves };
      tickets.add(ticket);
      notePeak();
      return ticket;
    },
    finishPack(ticket) {
      closeTicket(ticket, 'finishing of packing');
      ticket.moves.forEach(({ from, to }, i) => {
        const page = ticket.pages[i] as PageRecord;
        table.give('float', from);
        page.tier = 'packed';
        page.index = to;
        dropReference(page);
      });
    },
    cancelPack(ticket) {
      closeTicket(ticket, 'cancelling of packing');
      ticket.moves.forEach(({ to }, i) => {
        table.give('packed', to);
        dropReference(ticket.pages[i] as PageRecord);
      });
    },
    canReserve: (sizeBytes) => isCount(sizeBytes) && numSlabsFor(sizeBytes) <= table.numFreeSlabs(),
    reserve(sizeBytes) {
      assert(isCount(sizeBytes), `${sizeBytes} bytes requested for an adapter`);
      if (!pool.canReserve(sizeBytes)) throw noSlabs(sizeBytes);
      const count = numSlabsFor(sizeBytes);
      table.makeSlabs(count);
      const slabs = Array.from({ length: count }, () => ({
        offset: table.takeSlab() * layout.slabBytes,
        sizeBytes: layout.slabBytes,
      }));
      const reservation: Reservation = { sizeBytes, slabs };
      reservations.add(reservation);
      notePeak();
      return reservation;
    },
    unreserve(reservation) {
      const { sizeBytes, slabs } = reservation;
      assert(reservations.delete(reservation), `no reservation of ${sizeBytes} bytes to release`);
      // Backwards, so that the same slabs come out in the order they had.
      for (let i = slabs.length - 1; i >= 0; i--) table.giveSlab(slabs[i]!.offset / layout.slabBytes);
    },
    reservedBytes: () => [...reservations].reduce((sum, { slabs }) => sum + slabs.length * layout.slabBytes, 0),
    checkIntegrity(owners) {
      checkSlabs(layout, table, tickets, reservations);
      checkReferences(table, owners, tickets);
      const { usedBytes } = table;
      assert(usedBytes <= peakBytes, `${usedBytes} bytes are used, more than the peak of ${peakBytes}`);
      assert(peakBytes <= layout.budgetBytes, `peak of ${peakBytes} bytes, budget of ${layout.budgetBytes}`);
    },
  };

  function noPages(tier: PageTier, count: number): RuvLLMError {
    const freePages = pool.numFreePages(tier);
    const { usedBytes, budgetBytes } = pool;
    return new RuvLLMError(
      'out_of_memory',
      `${count} ${tier} KV pages requested, ${freePages} available; ${usedBytes} of ${budgetBytes} bytes are used`,
      { data: { neededPages: count, freePages, usedBytes, budgetBytes } },
    );
  }

  function noSlabs(sizeBytes: number): RuvLLMError {
    const freeBytes = table.numFreeSlabs() * layout.slabBytes;
    const { usedBytes, budgetBytes } = pool;
    return new RuvLLMError(
      'out_of_memory',
      `${sizeBytes} bytes requested for an adapter, ${freeBytes} available in slabs of ${layout.slabBytes}; ` +
        `${usedBytes} of ${budgetBytes} bytes are used`,
      { data: { neededBytes: sizeBytes, freeBytes, usedBytes, budgetBytes } },
    );
  }

  return pool;
}
