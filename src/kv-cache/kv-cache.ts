import { assert, RuvLLMError } from '../core/errors.ts';
import { maxTokensOf, openPool, PACK_TOKENS } from './cache-capacity.ts';
import { type CacheNamespace, decodeNamespace, namespaceId, tenantKey } from './cache-namespace.ts';
import { type BlockEvent, createBlockLog } from './block-log.ts';
import { createEvictionOrder } from './eviction-order.ts';
import { createImageKeys, type ImageKeys } from './image-keys.ts';
import type { PrefixQuery, PrefixReport } from './types.ts';
import { FLOAT_TAIL_TOKENS } from './kv-policy.ts';
import type { PageMemory } from './page-memory.ts';
import { createPrefixTree } from './prefix-tree.ts';
import { createSequencePages, type PageCounts, type SequencePages } from './sequence-pages.ts';
import { createSequenceState, usableMatch } from './sequence-state.ts';
import type { PageFetch, PageFetches } from './page-fetch.ts';
import { createSharedPages, type SharedPagesOptions, type SharedStats } from './shared-pages.ts';
import { createSpillQueue } from './spill-queue.ts';
import { createStateShelf, type StateMemory } from './state-shelf.ts';
import type { KvPage, PageTier, Reservation, Retention, SpillStats, SpillStore } from './types.ts';

export interface KvCacheOptions {
  readonly memory: PageMemory;
  /** The memory budget in float pages. */
  readonly numPages: number;
  /** Maximum tokens computed in one step, which stay unpacked until it ends. */
  readonly maxBatchTokens: number;
  /** Maximum tokens of a sequence; reservations leave memory for one of them. Default: as many as fit. */
  readonly maxContext?: number;
  /** Identifies the content of pages: the model and its KV precision. */
  readonly modelHash: string;
  readonly policy: string;
  /** Packing is disabled if one sequence of this length would not fit any more. Default 0. */
  readonly minTokens?: number;
  /** Tokens at the end of a running sequence that are never packed. Default 256. */
  readonly tailTokens?: number;
  /** Enables the prefix cache. Default true. */
  readonly keepsPrefixes?: boolean;
  readonly spill?: SpillStore | null;
  /** Storage of several nodes behind memory and disk; default null: none. */
  readonly shared?: Pick<SharedPagesOptions, 'store' | 'timeoutMs' | 'now' | 'onReady'> | null;
  /** Of models with recurrent layers; more than sequences can run at once. */
  readonly states?: StateMemory | null;
  /** Reports cached pages by hashes with this salt; default null: it does not. */
  readonly blockSalt?: string | null;
  /** Default: nothing. */
  readonly lent?: LentMemory;
}

/** Namespace and retention of a request's pages. */
export interface SequenceOwner {
  readonly tenant: string;
  readonly adapterHash: string | null;
  /** False: it neither reads nor fills the prefix cache. */
  readonly cachePrefix: boolean;
  readonly retention: Retention;
}

/** All KV pages of a model: one budget, shared prefixes, float and packed tiers, and a spill store. */
export interface KvCache {
  /** Maximum tokens of one sequence. */
  readonly maxTokens: number;
  /** Uncached tokens a sequence needs memory for when it starts; beyond one step's tokens, pages get packed on the way. */
  readonly maxNewTokens: number;
  /** Whether older pages are packed. */
  readonly packsPages: boolean;
  /** Whether sequences can share pages at all. */
  readonly keepsPrefixes: boolean;
  /** The unit of reservations, and their largest contiguous range. */
  readonly slabBytes: number;
  /** The keys of images in `tokens` of its functions. */
  readonly images: Pick<ImageKeys, 'keyOf'>;
  openSequence(owner: SequenceOwner): SequencePages;
  /** Reads pages of a prompt that other nodes stored; null: nothing to wait for. Call it after `openSequence`. */
  fetchShared(owner: SequenceOwner, tokens: readonly number[]): PageFetch | null;
  /** Pages on their way from the shared store; null without one. */
  readonly fetches: Pick<PageFetches, 'size' | 'next' | 'settle'> | null;
  /** A step computed this many tokens. */
  onComputed(numTokens: number, elapsedMs: number): void;
  /** Between two steps: packs pages that left the tails of `running`; above the high mark, reclaims down to the low mark. */
  maintain(running: readonly RunningPages[]): Promise<void>;
  readonly hasBackgroundWork: boolean;
  /** A slice of background work: writes some pages to disk. */
  workInBackground(): void;
  /** Float pages that sequences can have beside those `held`: cached prefixes and lent memory make room, adapters do not. */
  numFreePages(held: Iterable<KvPage>): number;
  canReserve(sizeBytes: number): boolean;
  /** Memory for an adapter; idle pages make room for it. */
  reserve(sizeBytes: number): Reservation;
  unreserve(reservation: Reservation): void;
  /** Evicts all idle pages. */
  clear(): void;
  /** Drops all cached pages of a tenant, in memory and on disk, and its key on disk unless `keepsKey`. */
  eraseTenant(tenant: string, options: { readonly keepsKey: boolean }): void;
  /** Cached namespaces, queued and stored pages of a tenant. */
  countTenant(tenant: string): number;
  stats(): KvCacheStats;
  /** Tokens at the start of a prompt that are in memory for this tenant and adapter; takes and changes nothing. */
  cachedTokens(owner: Pick<SequenceOwner, 'tenant' | 'adapterHash'>, tokens: readonly number[]): number;
  /** Changes of the cached pages since the last call; none without `blockSalt`. */
  takeBlockEvents(): readonly BlockEvent[];
  /** Hashes of the whole pages of a prompt; null without `blockSalt`, and for requests that share no pages. */
  promptBlocks(owner: Omit<SequenceOwner, 'retention'>, tokens: readonly number[]): readonly string[] | null;
  /** A bounded part of the shared prefixes. */
  prefixes(query: PrefixQuery): PrefixReport;
  /** Throws `internal` if pages, trees and sequences are inconsistent. */
  checkIntegrity(sequences: Iterable<SequencePages>): void;
  /** Writes what is queued; resolves when a shared store has it, too. */
  dispose(): Promise<void>;
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

/** Use of the memory budget, and cache hits. */
export interface KvCacheStats extends Readonly<PageCounts> {
  readonly budgetBytes: number;
  readonly usedBytes: number;
  readonly peakBytes: number;
  readonly tail: TierStats;
  readonly packed: TierStats;
  /** Bytes of the pages unpacked, divided by their actual bytes. */
  readonly compressionRatio: number;
  /** Pages in the prefix trees, and how many of them are idle. */
  readonly numCachedPages: number;
  readonly numIdlePages: number;
  /** The order in which idle pages are evicted. */
  readonly evictionOrder: 'recency' | 'forks';
  /** Pages that sessions keep, included in `tail` and `packed`. */
  readonly sessionBytes: number;
  readonly adapterBytes: number;
  /** States of recurrent layers, and how many of them are checkpoints of cached pages. Null: there are none. */
  readonly states: { readonly numStates: number; readonly stateBytes: number; readonly numCheckpoints: number } | null;
  readonly spill: (SpillStats & { readonly numWaiting: number }) | null;
  /** The store that other nodes use, too; null: none. */
  readonly shared: SharedStats | null;
}

/** Idle pages packed at a time: meanwhile each occupies both tiers. */
const PACK_PAGES = 16;
/** Shares of the budget: above the first, idle pages are evicted down to the second, not one page at every step. */
const HIGH_MARK = 0.9;
const LOW_MARK = 0.8;
/** Pages written per step when memory is needed soon, and otherwise: a few milliseconds, and one page. */
const WRITES_IN_A_STEP = 16;
const WRITES_BESIDE_WORK = 1;
const WRITES_WHEN_IDLE = 8;

/** Reservations for what only saves time: they are given back when requests or adapters need the memory. */
export interface LentMemory {
  readonly sizeBytes: number;
  /** Frees a slab; false: there is none. */
  giveBack(): boolean;
}

const NOTHING_LENT: LentMemory = { sizeBytes: 0, giveBack: () => false };

/** Creates a cache with all memory free. */
export function createKvCache(requested: KvCacheOptions): KvCache {
  const { modelHash, policy, tailTokens = FLOAT_TAIL_TOKENS, keepsPrefixes = true, lent = NOTHING_LENT } = requested;
  const states = requested.states == null ? null : createStateShelf(requested.states);
  const { memory, pool } = openPool({ ...requested, onFree: (page) => states?.drop(page) }, tailTokens);
  const options: KvCacheOptions = { ...requested, memory };
  const { pageTokens } = memory;
  const slabBytes = pool.slabPages.float * memory.pageBytes;
  const order = createEvictionOrder(pageTokens);
  const { retain, release } = pool;
  const plainTree = createPrefixTree({ pageTokens, retain, release, value: order.value, ownerOf: tenantKey });
  const blocks = options.blockSalt == null ? null : createBlockLog({ salt: options.blockSalt, pageTokens });
  const tree = blocks?.wrap(plainTree) ?? plainTree;
  /** The size of the tree when memory was last short: the room that prefixes have. */
  let maxCachedPages = Infinity;
  const images = createImageKeys();
  const spill = options.spill == null ? null : createSpillQueue(options.spill, memory, images, states);
  const query = states === null ? null : createSequenceState(states, pageTokens);
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
  const shared =
    options.shared == null
      ? null
      : createSharedPages({
          ...options.shared,
          sources: { memory, pool, states, makeRoom },
          tree,
          spill,
          images,
          onRestored: (numPages) => (counts.numRestored += numPages),
        });
  let numPrivate = 0;
  let isReclaiming = false;
  /** Pages that evictions of this step have written to disk. */
  let numWrittenNow = 0;

  /** A shared namespace has at least four framed fields, so it never equals a number. */
  const newPrivateNamespace = (): string => `${numPrivate++}`;

  const namespacesOf = (tenant: string): readonly string[] =>
    tree.namespaces().filter((id) => decodeNamespace(id)?.tenant === tenant);

  function evict(retention: Retention, isEnough: () => boolean, keepsFloors = true): void {
    if (isEnough()) return;
    if (retention === 'ordinary') maxCachedPages = tree.numPages;
    counts.numEvictions += tree.evict({
      retention,
      keepsFloors,
      isEnough,
      onEvict(page, place) {
        if (spill?.writeEvicted(page, place) === true) numWrittenNow++;
        shared?.writeEvicted(page, place);
      },
    });
  }

  function makeRoomFor(isEnough: () => boolean): boolean {
    // Floors last: requests come before cached prefixes.
    for (const keepsFloors of [true, false]) {
      evict('ordinary', isEnough, keepsFloors);
      evict('session', isEnough, keepsFloors);
    }
    while (!isEnough() && lent.giveBack());
    return isEnough();
  }

  /** Evicts nothing if even all idle pages are too few. */
  function makeRoom(tier: PageTier, count: number): boolean {
    const isEnough = (): boolean => pool.canAllocate(tier, count);
    if (isEnough()) return true;
    // Freeing the last page of a slab can free more than that page.
    const perPage = tier === 'float' ? 1 : Math.ceil(pool.slabPages.packed / pool.slabPages.float);
    const numLent = (lent.sizeBytes / slabBytes) * pool.slabPages[tier];
    const most = pool.numFreePages(tier) + perPage * tree.numIdlePages() + numLent + 2 * pool.slabPages[tier];
    return most >= count && makeRoomFor(isEnough);
  }

  /** Packs those of `pages` that still exist: requests may have been cancelled meanwhile. */
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

  /** Float pages that have left the tail of every sequence using them. */
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

  /** As many at a time as fit: each occupies both tiers until it is packed. */
  async function packBehindTails(running: readonly RunningPages[]): Promise<void> {
    const pages = pagesBehindTails(running);
    while (pages.length > 0 && makeRoomFor(() => pool.canAllocate('packed', 1))) {
      await pack(pages.splice(0, pool.numFreePages('packed')));
    }
  }

  /** Whole idle float pages. Partly filled pages cannot be packed, because they may still be continued. */
  function idleFloatPages(): KvPage[] {
    const floatPages: KvPage[] = [];
    for (const { page, place } of tree.idlePages()) {
      if (page.tier === 'float' && place.tokens.length === pageTokens) floatPages.push(page);
    }
    return floatPages;
  }

  const maxTokens = Math.min(options.maxContext ?? Infinity, maxTokensOf(options, pool, tailTokens, 0));

  /** A sequence of `maxTokens` must fit when it runs alone, or it would wait for ever. */
  function leavesRoom(sizeBytes: number): boolean {
    const numSlabs = Math.ceil(sizeBytes / slabBytes) + (pool.reservedBytes() - lent.sizeBytes) / slabBytes;
    return maxTokensOf(options, pool, tailTokens, numSlabs) >= maxTokens;
  }

  const isBelow = (share: number) => (): boolean => pool.usedBytes <= share * pool.budgetBytes;

  /**
   * Order: idle prefixes, then packing, then sessions. Required writes are spread over several steps, because streams
   * stall meanwhile.
   */
  async function reclaim(): Promise<void> {
    const isDone = isBelow(LOW_MARK);
    const isEnough = (): boolean => isDone() || numWrittenNow >= WRITES_IN_A_STEP;
    const before = counts.numEvictions + counts.numPacked;
    numWrittenNow = 0;
    evict('ordinary', isEnough);
    if (memory.packed !== null && !isEnough()) {
      const pages = idleFloatPages();
      for (let i = 0; i < pages.length && !isEnough(); i += PACK_PAGES) await pack(pages.slice(i, i + PACK_PAGES));
    }
    evict('session', isEnough);
    isReclaiming = !isDone() && counts.numEvictions + counts.numPacked > before;
  }

  const namespaceOf = ({ tenant, adapterHash }: Pick<SequenceOwner, 'tenant' | 'adapterHash'>): CacheNamespace => ({
    tenant,
    adapterHash,
    modelHash,
    policy,
  });

  const tierStats = (tier: 'float' | 'packed', sizeBytes: number): TierStats => {
    const count = pool.numPages(tier);
    return { numPages: count, numTokens: count * pageTokens, sizeBytes: count * sizeBytes };
  };

  function sessionBytes(): number {
    let total = 0;
    for (const { tier } of tree.sessionPages()) total += (tier === 'float' ? memory : memory.packed)?.pageBytes ?? 0;
    return total;
  }

  return {
    maxTokens,
    maxNewTokens: memory.packed === null ? Infinity : options.maxBatchTokens,
    packsPages: memory.packed !== null,
    keepsPrefixes,
    slabBytes,
    images,
    openSequence(owner) {
      const namespace = namespaceOf(owner);
      const id = namespaceId(namespace);
      const isShared = keepsPrefixes && owner.cachePrefix;
      if (isShared) {
        spill?.admit(namespace);
        shared?.admit(namespace);
      }
      return createSequencePages(
        {
          memory,
          pool,
          tree,
          spill,
          shared,
          states,
          counts,
          room,
          makeRoom,
          observe: (prefix) => order.observe(id, prefix, maxCachedPages),
          newPrivateNamespace,
        },
        { namespace: isShared ? id : newPrivateNamespace(), isShared, retention: owner.retention },
      );
    },
    fetchShared(owner, tokens) {
      if (shared === null || !keepsPrefixes || !owner.cachePrefix) return null;
      return shared.fetch(namespaceId(namespaceOf(owner)), tokens, owner.retention);
    },
    fetches: shared?.fetches ?? null,
    onComputed: (numTokens, elapsedMs) => shared?.onComputed(numTokens, elapsedMs),
    async maintain(running) {
      if (memory.packed !== null) await packBehindTails(running);
      if (isReclaiming || !isBelow(HIGH_MARK)()) await reclaim();
      else spill?.writeSome(WRITES_BESIDE_WORK);
      shared?.work(WRITES_BESIDE_WORK);
    },
    get hasBackgroundWork() {
      return (spill !== null && spill.numWaiting > 0) || shared?.hasWork === true;
    },
    workInBackground() {
      spill?.writeSome(WRITES_WHEN_IDLE);
      shared?.work(WRITES_WHEN_IDLE);
    },
    numFreePages(held) {
      const count = { float: 0, packed: 0 };
      for (const { tier } of new Set(held)) count[tier]++;
      const numPacked = count.packed === 0 ? 0 : Math.ceil(count.packed / pool.slabPages.packed);
      const numSlabs = numPacked + (pool.reservedBytes() - lent.sizeBytes) / slabBytes;
      return Math.max(0, options.numPages - count.float - numSlabs * pool.slabPages.float);
    },
    canReserve: (sizeBytes) => leavesRoom(sizeBytes) && pool.canReserve(sizeBytes),
    reserve(sizeBytes) {
      const { budgetBytes } = pool;
      const needed = `${sizeBytes} bytes for adapter weights do not fit`;
      if (!leavesRoom(sizeBytes)) {
        const data = { neededBytes: sizeBytes, reservedBytes: pool.reservedBytes(), budgetBytes, maxTokens };
        const message = `${needed}: ${data.reservedBytes} bytes are reserved already, and the budget of ${budgetBytes} must also hold a sequence of ${maxTokens} tokens`;
        throw new RuvLLMError('out_of_memory', message, { data });
      }
      if (!makeRoomFor(() => pool.canReserve(sizeBytes))) {
        const { usedBytes } = pool;
        const data = { neededBytes: sizeBytes, usedBytes, budgetBytes };
        const message = `${needed}: ${usedBytes} bytes of the budget of ${budgetBytes} are in use`;
        throw new RuvLLMError('out_of_memory', message, { data, isRetryable: true });
      }
      return pool.reserve(sizeBytes);
    },
    unreserve(reservation) {
      pool.unreserve(reservation);
      room.numReturns++;
    },
    clear() {
      evict('session', () => false, false);
      order.clear();
      maxCachedPages = Infinity;
    },
    eraseTenant(tenant, options) {
      for (const id of namespacesOf(tenant)) tree.drop(id);
      order.clear(); // it remembers the beginnings of prompts
      room.numReturns++;
      spill?.eraseTenant(tenant, options);
      shared?.forgetTenant(tenant);
    },
    countTenant: (tenant) => namespacesOf(tenant).length + (spill?.numPagesOf(tenant) ?? 0),
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
        evictionOrder: order.name,
        sessionBytes: sessionBytes(),
        adapterBytes: pool.reservedBytes(),
        states: states === null ? null : { numStates: states.numStates, stateBytes: states.stateBytes, numCheckpoints: states.numCheckpoints }, // prettier-ignore
        spill: spill === null ? null : { ...spill.stats(), numWaiting: spill.numWaiting },
        shared: shared?.stats() ?? null,
      };
    },
    cachedTokens(owner, tokens) {
      // The last token is always computed: its logits are needed.
      const match = tree.match(namespaceId(namespaceOf(owner)), tokens.slice(0, -1));
      const { pages, partial } = usableMatch(match, query);
      return pages.length * pageTokens + (partial?.numTokens ?? 0);
    },
    takeBlockEvents: () => blocks?.take() ?? [],
    promptBlocks: (owner, tokens) =>
      blocks === null || !keepsPrefixes || !owner.cachePrefix
        ? null
        : blocks.hashesOf(namespaceId(namespaceOf(owner)), tokens),
    prefixes: (query) => ({
      pageTokens,
      floatPageBytes: memory.pageBytes,
      packedPageBytes: memory.packed?.pageBytes ?? 0,
      ...tree.describe(query),
    }),
    checkIntegrity(sequences) {
      tree.checkIntegrity();
      const running = [...sequences];
      pool.checkIntegrity([...running.map(({ pages }) => pages), ...tree.owners()]);
      states?.checkIntegrity(running.flatMap(({ heldStates }) => heldStates));
      assert(
        pool.peakBytes <= pool.budgetBytes,
        `peak of ${pool.peakBytes} bytes exceeds the budget of ${pool.budgetBytes}`,
      );
    },
    async dispose() {
      spill?.writeSome(Infinity);
      await shared?.close();
      spill?.close();
    },
  };
}
