import { assert, RuvLLMError } from '../core/errors.ts';
import { type CacheNamespace, namespaceId } from './cache-namespace.ts';
import { FLOAT_TAIL_TOKENS } from './kv-policy.ts';
import { copyPage, type PageMemory } from './page-memory.ts';
import { createPrefixTree } from './prefix-tree.ts';
import { createSequencePages, type PageCounts, type SequencePages } from './sequence-pages.ts';
import { createSpillQueue } from './spill-queue.ts';
import type {
  KvPage,
  PagePool,
  PagePoolOptions,
  Reservation,
  ReservationKind,
  Retention,
  SpillStats,
  SpillStore,
} from './types.ts';
import { createUnifiedPool } from './unified-pool.ts';

export interface KvCacheOptions {
  readonly memory: PageMemory;
  /** Float pages the budget holds. */
  readonly numPages: number;
  /** Most tokens computed in one step: room for them is kept beside packed pages. */
  readonly maxBatchTokens: number;
  /** Most tokens of a sequence that is served; reservations leave room for one of them. Default: as many as fit. */
  readonly maxContext?: number;
  /** Names what pages hold: the model's content, and how exactly it is kept. */
  readonly modelHash: string;
  readonly policy: string;
  /** Pages are not packed where one sequence of this length would not fit any more. Default 0. */
  readonly minTokens?: number;
  /** Tokens at the end of a running sequence that are never packed. Default 256. */
  readonly tailTokens?: number;
  /** Whether idle pages stay known to later requests. Default true. */
  readonly keepsPrefixes?: boolean;
  readonly spill?: SpillStore | null;
}

/** Whose request it is, as far as pages are concerned. */
export interface SequenceOwner {
  readonly tenant: string;
  readonly adapterHash: string | null;
  /** False: pages of others are not looked for, and nobody finds these. */
  readonly cachePrefix: boolean;
  readonly retention: Retention;
}

/** All KV pages of a model: one budget, shared prefixes, two tiers, and a third one on disk. */
export interface KvCache {
  /** Most tokens one sequence can have. */
  readonly maxTokens: number;
  /** Tokens behind the known ones that a sequence must find room for when it begins; more than a step's are packed on the way. */
  readonly maxNewTokens: number;
  /** Whether older pages are packed. */
  readonly packsPages: boolean;
  /** Whether a sequence can find pages of others at all. */
  readonly keepsPrefixes: boolean;
  openSequence(owner: SequenceOwner): SequencePages;
  /**
   * Between two steps: packs what has left the tails of `running`, and above the high mark reclaims down to the low one, in the declared order.
   */
  maintain(running: readonly RunningPages[]): Promise<void>;
  readonly hasBackgroundWork: boolean;
  /** A slice of what can wait: writes some pages to disk. */
  workInBackground(): void;
  canReserve(sizeBytes: number): boolean;
  /** Memory for something that is not a page; idle pages make room for it. */
  reserve(kind: ReservationKind, sizeBytes: number): Reservation;
  unreserve(reservation: Reservation): void;
  /** Forgets all idle pages in memory. */
  clear(): void;
  stats(): KvCacheStats;
  /** Throws `internal` when pages, trees and sequences do not add up. */
  checkIntegrity(sequences: Iterable<SequencePages>): void;
  dispose(): void;
}

export interface RunningPages {
  readonly pages: SequencePages;
  readonly numComputed: number;
}

export interface TierStats {
  readonly numPages: number;
  readonly numTokens: number;
  readonly sizeBytes: number;
}

export interface KvCacheStats extends Readonly<PageCounts> {
  readonly budgetBytes: number;
  readonly usedBytes: number;
  readonly peakBytes: number;
  readonly tail: TierStats;
  readonly packed: TierStats;
  /** Bytes the pages would take unpacked, over the bytes they take. */
  readonly compressionRatio: number;
  /** Pages that prefix trees know, and how many of them nobody uses now. */
  readonly numCachedPages: number;
  readonly numIdlePages: number;
  readonly adapterBytes: number;
  readonly routerBytes: number;
  readonly spill: (SpillStats & { readonly numWaiting: number }) | null;
}

/** Packed together: rounding a page at a time would be a step's worth of overhead for each. */
const PACK_TOKENS = 64;
/** Idle pages packed at a time: they need both places for a moment. */
const PACK_PAGES = 16;
/** Above the first share of the budget idle pages go, until the second is reached: not one page at every step. */
const HIGH_MARK = 0.9;
const LOW_MARK = 0.8;
/** Pages written to disk in a slice: a few milliseconds between two steps. */
const WRITES_IN_A_STEP = 1;
const WRITES_WHEN_IDLE = 8;

/**
 * The pool, and the memory as it will be used. A slab must be spared for packed pages; where that leaves less than was asked for, a few
 * sequences of float pages are worth more than packing.
 */
function openPool(
  options: KvCacheOptions,
  tailTokens: number,
): { readonly memory: PageMemory; readonly pool: PagePool } {
  const { memory, numPages, minTokens = 0 } = options;
  const { pageTokens, pageBytes, packed } = memory;
  const open = (pages: PagePoolOptions['packed']): PagePool =>
    createUnifiedPool({
      numPages,
      pageBytes,
      packed: pages,
      copyPage: (tier, from, to) => copyPage(memory, tier, from, to),
    });
  if (packed === null) return { memory, pool: open(null) };
  const pool = open({ pageBytes: packed.pageBytes, unitBytes: packed.unitBytes });
  if (maxTokensOf(options, pool, tailTokens, 0) >= Math.min(minTokens, numPages * pageTokens)) return { memory, pool };
  return { memory: { ...memory, packed: null }, pool: open(null) };
}

/** A cache with all memory free. */
export function createKvCache(given: KvCacheOptions): KvCache {
  const { modelHash, policy, tailTokens = FLOAT_TAIL_TOKENS, keepsPrefixes = true } = given;
  const { memory, pool } = openPool(given, tailTokens);
  const options: KvCacheOptions = { ...given, memory };
  const { pageTokens } = memory;
  const slabBytes = pool.slabPages.float * memory.pageBytes;
  const tree = createPrefixTree({ pageTokens, retain: pool.retain, release: pool.release });
  const spill = options.spill == null ? null : createSpillQueue(options.spill, memory);
  const counts: PageCounts = {
    numLookups: 0,
    numHits: 0,
    numPartialHits: 0,
    numMisses: 0,
    savedTokens: 0,
    numEvictions: 0,
    numPacked: 0,
    numRestored: 0,
    numCopied: 0,
  };
  const room = { numReturns: 0 };
  let numPrivate = 0;

  function evict(retention: Retention, isEnough: () => boolean): void {
    if (isEnough()) return;
    counts.numEvictions += tree.evict({
      retention,
      isEnough,
      onEvict: (page, place) => spill?.writeEvicted(page, place),
    });
  }

  function makeRoomFor(isEnough: () => boolean): boolean {
    evict('ordinary', isEnough);
    evict('session', isEnough);
    return isEnough();
  }

  /** Packs those of `pages` that are still there: while others were packed, requests may have been cancelled. */
  async function pack(pages: readonly KvPage[]): Promise<void> {
    const present = pages.filter(({ numRefs }) => numRefs > 0);
    const ticket = pool.beginPack(present);
    if (ticket === null) return;
    try {
      await memory.packPages(ticket.moves);
    } catch (error) {
      pool.cancelPack(ticket);
      throw error;
    }
    pool.finishPack(ticket);
    room.numReturns++;
    counts.numPacked += present.length;
  }

  /** Float pages that have left the tail of every sequence that uses them. */
  function pagesBehindTails(running: readonly RunningPages[]): KvPage[] {
    const behind = new Set<KvPage>();
    const numBehind = running.map(({ pages, numComputed }) => {
      const numOld = Math.max(0, Math.floor((numComputed - tailTokens) / PACK_TOKENS)) * PACK_TOKENS;
      const count = Math.floor(numOld / pageTokens);
      for (let i = 0; i < count; i++) if (pages.pages[i]!.tier === 'float') behind.add(pages.pages[i]!);
      return count;
    });
    if (behind.size === 0) return [];
    for (const [index, { pages }] of running.entries()) {
      for (let i = numBehind[index]!; i < pages.pages.length; i++) behind.delete(pages.pages[i]!);
    }
    return [...behind];
  }

  /** As many at a time as there is room for: each needs both places until it is packed. */
  async function packBehindTails(running: readonly RunningPages[]): Promise<void> {
    const pages = pagesBehindTails(running);
    while (pages.length > 0 && makeRoomFor(() => pool.canAllocate('packed', 1))) {
      await pack(pages.splice(0, pool.numFreePages('packed')));
    }
  }

  /** Whole idle pages that could be packed. A page that is not whole cannot be: the rest of it is not written. */
  function idleFloatPages(): KvPage[] {
    const found: KvPage[] = [];
    for (const { page, place } of tree.idlePages()) {
      if (page.tier === 'float' && place.tokens.length === pageTokens) found.push(page);
    }
    return found;
  }

  const maxTokens = Math.min(options.maxContext ?? Infinity, maxTokensOf(options, pool, tailTokens, 0));
  const reservedBytes = (): number => pool.reservedBytes('adapter') + pool.reservedBytes('router');

  /** A sequence of `maxTokens` must have room whenever it is alone, or it would wait for ever. */
  function leavesRoom(sizeBytes: number): boolean {
    const numSlabs = Math.ceil(sizeBytes / slabBytes) + reservedBytes() / slabBytes;
    return maxTokensOf(options, pool, tailTokens, numSlabs) >= maxTokens;
  }

  const isBelow = (share: number) => (): boolean => pool.usedBytes <= share * pool.budgetBytes;

  /** The declared order: idle prefixes, then packing, then sessions (to disk, where there is one). */
  async function reclaim(): Promise<void> {
    const isEnough = isBelow(LOW_MARK);
    evict('ordinary', isEnough);
    if (memory.packed !== null && !isEnough()) {
      const pages = idleFloatPages();
      while (pages.length > 0 && !isEnough() && pool.canAllocate('packed', 1)) {
        await pack(pages.splice(0, Math.min(PACK_PAGES, pool.numFreePages('packed'))));
      }
    }
    evict('session', isEnough);
  }

  const namespaceOf = ({ tenant, adapterHash }: SequenceOwner): CacheNamespace => ({
    tenant,
    adapterHash,
    modelHash,
    policy,
  });

  const tierStats = (tier: 'float' | 'packed', sizeBytes: number): TierStats => {
    const count = pool.numPages(tier);
    return { numPages: count, numTokens: count * pageTokens, sizeBytes: count * sizeBytes };
  };

  return {
    maxTokens,
    maxNewTokens: memory.packed === null ? Infinity : options.maxBatchTokens,
    packsPages: memory.packed !== null,
    keepsPrefixes,
    openSequence(owner) {
      const namespace = namespaceOf(owner);
      const id = namespaceId(namespace);
      const isShared = keepsPrefixes && owner.cachePrefix;
      if (isShared) spill?.admit(namespace);
      return createSequencePages(
        {
          memory,
          pool,
          tree,
          spill,
          counts,
          room,
          makeRoom: (tier, count) => makeRoomFor(() => pool.canAllocate(tier, count)),
        },
        // A namespace has at least four framed fields, so no number can collide with one.
        { namespace: isShared ? id : `${numPrivate++}`, isShared, retention: owner.retention },
      );
    },
    async maintain(running) {
      if (memory.packed !== null) await packBehindTails(running);
      if (!isBelow(HIGH_MARK)()) await reclaim();
      spill?.writeSome(WRITES_IN_A_STEP);
    },
    get hasBackgroundWork() {
      return spill !== null && spill.numWaiting > 0;
    },
    workInBackground: () => spill?.writeSome(WRITES_WHEN_IDLE),
    canReserve: (sizeBytes) => leavesRoom(sizeBytes) && pool.canReserve(sizeBytes),
    reserve(kind, sizeBytes) {
      const { budgetBytes } = pool;
      const needed = `${sizeBytes} bytes for ${kind} weights do not fit`;
      if (!leavesRoom(sizeBytes)) {
        const data = { neededBytes: sizeBytes, reservedBytes: reservedBytes(), budgetBytes, maxTokens };
        const message = `${needed}: beside ${data.reservedBytes} reserved ones, the budget of ${budgetBytes} must hold a sequence of ${maxTokens} tokens`;
        throw new RuvLLMError('out_of_memory', message, { data });
      }
      if (!makeRoomFor(() => pool.canReserve(sizeBytes))) {
        const { usedBytes } = pool;
        const data = { neededBytes: sizeBytes, usedBytes, budgetBytes };
        const message = `${needed}: ${usedBytes} of the budget of ${budgetBytes} are in use`;
        throw new RuvLLMError('out_of_memory', message, { data, isRetryable: true });
      }
      return pool.reserve(kind, sizeBytes);
    },
    unreserve(reservation) {
      pool.unreserve(reservation);
      room.numReturns++;
    },
    clear: () => evict('session', () => false),
    stats() {
      const tail = tierStats('float', memory.pageBytes);
      const packed = tierStats('packed', memory.packed?.pageBytes ?? 0);
      const sizeBytes = tail.sizeBytes + packed.sizeBytes;
      const unpackedBytes = (tail.numPages + packed.numPages) * memory.pageBytes;
      return {
        ...counts,
        budgetBytes: pool.budgetBytes,
        usedBytes: pool.usedBytes,
        peakBytes: pool.peakBytes,
        tail,
        packed,
        compressionRatio: sizeBytes === 0 ? 1 : unpackedBytes / sizeBytes,
        numCachedPages: tree.numPages,
        numIdlePages: tree.numIdlePages(),
        adapterBytes: pool.reservedBytes('adapter'),
        routerBytes: pool.reservedBytes('router'),
        spill: spill === null ? null : { ...spill.stats(), numWaiting: spill.numWaiting },
      };
    },
    checkIntegrity(sequences) {
      tree.checkIntegrity();
      pool.checkIntegrity([...[...sequences].map(({ pages }) => pages), ...tree.owners()]);
      assert(pool.peakBytes <= pool.budgetBytes, `${pool.peakBytes} bytes were used of ${pool.budgetBytes}`);
    },
    dispose() {
      spill?.writeSome(Infinity);
      spill?.close();
    },
  };
}

/**
 * The longest sequence that always fits when it is alone beside reservations. With packing that is more than the float pages: all but its
 * tail and the tokens of one step are packed. Slabs are what counts, for a slab holds pages of one tier only: float pages that are n slabs
 * full, some of them packed, never take more than n + 1.
 */
function maxTokensOf(
  { memory, numPages, maxBatchTokens }: KvCacheOptions,
  pool: PagePool,
  tailTokens: number,
  numReservedSlabs: number,
): number {
  const { pageTokens, packed } = memory;
  const { slabPages } = pool;
  const numSlabs = pool.numSlabs - numReservedSlabs;
  if (packed === null || pool.numSlabs < 2) return (numPages - numReservedSlabs * slabPages.float) * pageTokens;
  // What is not packed yet: the tail, a group that is not complete, and a step.
  const numFloat = Math.ceil((tailTokens + PACK_TOKENS + maxBatchTokens) / pageTokens) + 1;
  const numPackedSlabs = numSlabs - Math.ceil(numFloat / slabPages.float);
  return Math.max((numSlabs - 1) * slabPages.float, numPackedSlabs * slabPages.packed) * pageTokens;
}
