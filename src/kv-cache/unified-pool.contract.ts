import { expect } from 'vitest';
import { assert } from '../core/errors.ts';
import { createUnifiedPool } from './unified-pool.ts';
import type { KvPage, PackTicket, PagePool, PageTier, Reservation } from './types.ts';

/** Sizes of a simulated pool, in bytes. */
export interface PoolShape {
  readonly numPages: number;
  readonly slabPages: number;
  readonly pageBytes: number;
  readonly packedBytes: number | null;
  readonly unitBytes: number;
}

/** Owned bytes, filled with `fill`. */
interface Extent {
  readonly offset: number;
  readonly sizeBytes: number;
  readonly fill: number;
}

/**
 * A pool over real bytes with independent bookkeeping, used as the oracle. Every page is filled with a unique number
 * and must keep it wherever it is moved.
 */
export function createPoolModel(shape: PoolShape) {
  const { numPages, slabPages, pageBytes, packedBytes, unitBytes } = shape;
  const region = new Uint32Array((numPages * pageBytes) / 4);
  const slabBytes = slabPages * pageBytes;
  const numSlabs = Math.floor(numPages / slabPages);
  const tailPages = numPages % slabPages;
  const packedPerSlab = packedBytes === null ? 0 : Math.floor(slabBytes / packedBytes);
  const owners: KvPage[][] = [];
  const tickets: PackTicket[] = [];
  const reservations: { reservation: Reservation; fill: number }[] = [];
  const fills = new Map<KvPage, number>();
  let nextFill = 1;
  let peakBytes = 0;
  let numMoves = 0;
  let numMovesBesideTickets = 0;

  const words = (offset: number, sizeBytes: number): Uint32Array =>
    region.subarray(offset / 4, (offset + sizeBytes) / 4);
  const offsetOf = (tier: PageTier, index: number): number => index * (tier === 'float' ? pageBytes : unitBytes);
  const sizeOf = (tier: PageTier): number => (tier === 'float' ? pageBytes : packedBytes!);
  // A packed page has other bytes than its float page.
  const fillOf = (page: KvPage, tier: PageTier): number => fills.get(page)! * 2 + (tier === 'packed' ? 1 : 0);

  const pool: PagePool = createUnifiedPool({
    numPages,
    pageBytes,
    packed: packedBytes === null ? null : { pageBytes: packedBytes, unitBytes },
    slabPages,
    copyPage(tier, from, to) {
      numMoves++;
      if (tickets.length > 0) numMovesBesideTickets++;
      words(offsetOf(tier, to), sizeOf(tier)).set(words(offsetOf(tier, from), sizeOf(tier)));
    },
  });

  function write(page: KvPage, tier: PageTier, index: number): void {
    words(offsetOf(tier, index), sizeOf(tier)).fill(fillOf(page, tier));
  }

  const livePages = (): Set<KvPage> => new Set([...owners.flat(), ...tickets.flatMap(({ pages }) => pages)]);

  function extents(): Extent[] {
    const pages = [...livePages()].map((page) => ({
      offset: offsetOf(page.tier, page.index),
      sizeBytes: sizeOf(page.tier),
      fill: fillOf(page, page.tier),
    }));
    const held = tickets.flatMap((ticket) =>
      ticket.moves.map(({ to }, i) => ({
        offset: offsetOf('packed', to),
        sizeBytes: packedBytes!,
        fill: fillOf(ticket.pages[i]!, 'packed'),
      })),
    );
    const reserved = reservations.flatMap(({ reservation, fill }) =>
      reservation.slabs.map((slab) => ({ ...slab, fill })),
    );
    return [...pages, ...held, ...reserved];
  }

  /** The fewest bytes over all ways to divide the whole slabs that fit the pages in use and `extra` ones. */
  function leastBytes(extra: { float?: number; packed?: number; slabs?: number }): number {
    const pages = [...livePages()];
    const moves = tickets.flatMap((ticket) => ticket.moves);
    const floatPins = new Set(moves.map(({ from }) => Math.floor(from / slabPages)));
    const packedPins = new Set(moves.map(({ to }) => Math.floor((to * unitBytes) / slabBytes)));
    const isTailPinned = floatPins.delete(numSlabs);
    const numFloat = pages.filter(({ tier }) => tier === 'float').length + (extra.float ?? 0);
    const numPacked = pages.length - pages.filter(({ tier }) => tier === 'float').length;
    const numReserved = reservations.reduce((sum, { reservation }) => sum + reservation.slabs.length, 0);
    let least = Infinity;
    for (let float = floatPins.size; float <= numSlabs; float++) {
      for (let packed = packedPins.size; packed <= numSlabs; packed++) {
        if (packed * packedPerSlab < numPacked + moves.length + (extra.packed ?? 0)) continue;
        const whole = float + packed + numReserved + (extra.slabs ?? 0);
        if (whole > numSlabs) continue;
        for (const tail of isTailPinned ? [tailPages] : [0, tailPages]) {
          if (float * slabPages + tail >= numFloat) least = Math.min(least, whole * slabBytes + tail * pageBytes);
        }
      }
    }
    return least;
  }

  /** Throws unless the pool agrees with the bookkeeping. */
  function check(): void {
    let end = 0;
    let sumBytes = 0;
    for (const { offset, sizeBytes, fill } of extents().sort((a, b) => a.offset - b.offset)) {
      assert(offset >= end, `bytes from ${offset} on are two things, the first up to ${end}`);
      end = offset + sizeBytes;
      sumBytes += sizeBytes;
      for (const word of words(offset, sizeBytes)) assert(word === fill, `${word} at ${offset} instead of ${fill}`);
    }
    assert(end <= pool.budgetBytes, `bytes up to ${end} of ${pool.budgetBytes} are in use`);
    const usedBytes = leastBytes({});
    peakBytes = Math.max(peakBytes, usedBytes);
    assert(sumBytes <= usedBytes, `${sumBytes} live bytes in ${usedBytes} used ones`);
    expect({ used: pool.usedBytes, peak: pool.peakBytes }).toEqual({ used: usedBytes, peak: peakBytes });
    for (const tier of ['float', 'packed'] as const) {
      const free = pool.numFreePages(tier);
      const fits = [free, free + 1].map((count) => [
        pool.canAllocate(tier, count),
        leastBytes({ [tier]: count }) < Infinity,
      ]);
      expect({ tier, free, fits }).toEqual({
        tier,
        free,
        fits: [
          [true, true],
          [false, false],
        ],
      });
      const numPages = [...livePages()].filter((page) => page.tier === tier).length;
      assert(pool.numPages(tier) === numPages, `${pool.numPages(tier)} ${tier} pages, ${numPages} handed out`);
    }
    for (let slabs = 0; slabs <= numSlabs + 1; slabs++) {
      const fits = leastBytes({ slabs }) < Infinity;
      assert(pool.canReserve(slabs * slabBytes) === fits, `${slabs} slabs can be had: ${fits}`);
    }
    pool.checkIntegrity(owners);
  }

  return {
    pool,
    owners,
    tickets,
    reservations,
    check,
    write,
    newFill: () => nextFill++,
    name(page: KvPage) {
      fills.set(page, nextFill++);
    },
    fillReservation(reservation: Reservation, fill: number) {
      for (const { offset, sizeBytes } of reservation.slabs) words(offset, sizeBytes).fill(fill);
    },
    /** Locations and bytes of everything, for comparison. */
    snapshot: () => ({ pages: [...livePages()].map((page) => ({ ...page })), region: region.slice(), numMoves }),
    counts: () => ({ numMoves, numMovesBesideTickets }),
    slabBytes,
  };
}
