import type { CacheNamespace } from './cache-namespace.ts';

/** Page format: as the kernels wrote it, or packed by `packPages`. */
export type PageTier = 'float' | 'packed';

/**
 * A page in memory. Every reader holds the object and a reference. Packing and moving change where its bytes are, so `tier` and
 * `index` are read when a step is built and never stored.
 */
export interface KvPage {
  readonly tier: PageTier;
  /** Page id in the region of its tier. */
  readonly index: number;
  readonly numRefs: number;
}

/** Whole slabs of the region, for an adapter. */
export interface Reservation {
  readonly sizeBytes: number;
  /** Byte ranges of the region, one slab each; nothing larger than a slab is contiguous. */
  readonly slabs: readonly { readonly offset: number; readonly sizeBytes: number }[];
}

export interface PagePoolOptions {
  /** Float pages of the whole region: the budget in pages. */
  readonly numPages: number;
  readonly pageBytes: number;
  /** Packed page ids are byte offset / unitBytes; null: no packing. */
  readonly packed: { readonly pageBytes: number; readonly unitBytes: number } | null;
  /** Float pages per slab; default: chosen to minimize waste in both tiers. */
  readonly slabPages?: number;
  /** Copies a page within its tier; called while no step runs. */
  readonly copyPage: (tier: PageTier, from: number, to: number) => void;
  /** Called when the last reference to a page is gone. */
  readonly onFree?: (page: KvPage) => void;
}

/**
 * One region of memory divided into slabs; a slab holds float pages, packed pages or a reservation. The region is the
 * budget.
 */
export interface PagePool {
  readonly budgetBytes: number;
  /** Whole slabs, and pages per slab; 0: the tier does not exist. */
  readonly numSlabs: number;
  readonly slabPages: Readonly<Record<PageTier, number>>;
  /** Bytes in use even after compaction: whole slabs by tier, and reservations. */
  readonly usedBytes: number;
  /** The maximum of `usedBytes` so far. */
  readonly peakBytes: number;
  /** Pages of this tier in use. */
  numPages(tier: PageTier): number;
  /** Pages of this tier that could be allocated if nothing else was. */
  numFreePages(tier: PageTier): number;
  /** True if `allocate` would succeed, compacting other slabs if needed. No effect. */
  canAllocate(tier: PageTier, count: number): boolean;
  /** Allocates `count` pages with one reference each; throws `out_of_memory`, changing nothing, if `canAllocate` is false. */
  allocate(tier: PageTier, count: number): KvPage[];
  retain(page: KvPage): void;
  /** Removes a reference; a page without references is free and must not be used again. */
  release(page: KvPage): void;
  /**
   * Allocates packed slots for `pages` (float, in use) and returns the moves; null if memory is lacking. The pages stay
   * float until `finishPack`.
   */
  beginPack(pages: readonly KvPage[]): PackTicket | null;
  /** Switches the pages to their packed bytes and frees the float slots. Pages released meanwhile are freed. */
  finishPack(ticket: PackTicket): void;
  /** Frees the packed slots; the pages stay float. */
  cancelPack(ticket: PackTicket): void;
  canReserve(sizeBytes: number): boolean;
  reserve(sizeBytes: number): Reservation;
  unreserve(reservation: Reservation): void;
  /** In whole slabs. */
  reservedBytes(): number;
  /** Recounts references from `owners`, the page lists that exist, and slabs from pages; throws `internal` on a difference. */
  checkIntegrity(owners: Iterable<readonly KvPage[]>): void;
}

export interface PackTicket {
  readonly pages: readonly KvPage[];
  /** Float page id and packed page id. */
  readonly moves: readonly { readonly from: number; readonly to: number }[];
}

/** Eviction order. `session`: a conversation that is likely to continue, evicted last. */
export type Retention = 'ordinary' | 'session';

/** The cached beginning of a prompt. */
export interface PrefixMatch {
  /** Whole pages from the first token on. */
  readonly pages: readonly KvPage[];
  /** A page that shares only its first `numTokens` tokens with the prompt: must be copied before it is written. */
  readonly partial: { readonly page: KvPage; readonly numTokens: number } | null;
}

/** Pages by their tokens, in a radix tree per namespace. Holds one reference to each page. */
export interface PrefixTree {
  readonly numPages: number;
  readonly numNodes: number;
  /** The longest cached prefix of `tokens`. Does not count as a use: see `touch`. */
  match(namespace: string, tokens: ArrayLike<number>): PrefixMatch;
  /** Counts a use of the pages of a match. */
  touch(namespace: string, tokens: ArrayLike<number>, numTokens: number): void;
  /**
   * Inserts the first `numTokens` tokens with these pages, one per `pageTokens` tokens; the last may be partly filled. An existing
   * page with the same tokens is kept; the result says which page to use for each.
   */
  insert(
    namespace: string,
    tokens: ArrayLike<number>,
    numTokens: number,
    pages: readonly KvPage[],
    retention: Retention,
  ): readonly KvPage[];
  /** Idle pages: only the tree refers to them, so they can be evicted, leaves first. */
  numIdlePages(retention?: Retention): number;
  /**
   * Evicts idle pages, least valuable first, until `isEnough()`; returns their number. `retention: 'ordinary'` spares
   * sessions, `keepsFloors` the floor of each owner. `onEvict` is called before each release.
   */
  evict(options: {
    readonly retention: Retention;
    /** Default false. */
    readonly keepsFloors?: boolean;
    readonly isEnough: () => boolean;
    readonly onEvict?: (page: KvPage, place: TreePlace) => void;
  }): number;
  /** All idle pages, most valuable first. */
  idlePages(): Iterable<{ readonly page: KvPage; readonly place: TreePlace }>;
  /** A bounded part of the tree, for display. */
  describe(query: PrefixQuery): Pick<PrefixReport, 'nodes' | 'isComplete'>;
  /** The pages that sessions keep. */
  sessionPages(): Iterable<KvPage>;
  /** Drops a namespace; pages in use elsewhere stay valid. */
  drop(namespace: string): void;
  /** All namespaces with pages. */
  namespaces(): readonly string[];
  /** One page list per namespace, for the pool's reference check. */
  owners(): Iterable<readonly KvPage[]>;
  /** Throws `internal` if the tree breaks one of its rules. */
  checkIntegrity(): void;
}

/** The position of a page in a tree. */
export interface TreePlace {
  readonly namespace: string;
  /** The tokens of this page. */
  readonly tokens: Int32Array;
  /** Number of `touch` calls that reached it. */
  readonly numUses: number;
  /** The page before it, or null for the first. */
  readonly parent: () => { readonly page: KvPage; readonly place: TreePlace } | null;
}

/** Encrypted pages in storage that outlives the process. Never throws on a storage failure. */
export interface SpillStore {
  /** The part of the store that belongs to one namespace. */
  open(namespace: CacheNamespace): SpillSpace;
  /** Deletes the pages of a tenant, and its key unless `keepsKey`. Throws `io` if the storage refuses. */
  eraseTenant(tenant: string, options?: { readonly keepsKey?: boolean }): void;
  /** The pages of a tenant in storage, also those of other models and processes. */
  numPagesOf(tenant: string): number;
  stats(): SpillStats;
  close(): void;
}

/** Names pages by the pages before them, in one namespace of a store. */
export interface NamingSpace {
  /** Key of the empty prefix. Cannot be computed without the tenant's key. */
  readonly rootKey: string;
  /** Key of the page with these tokens after the page `parentKey`. */
  childKey(parentKey: string, tokens: ArrayLike<number>): string;
}

export interface SpillSpace extends NamingSpace {
  has(key: string): boolean;
  /** Stores a page; false on failure, which `stats` explains. */
  write(key: string, tier: PageTier, bytes: Uint8Array): boolean;
  /** The stored page, or null if it is missing or damaged; then `has` is false from now on. */
  read(key: string): { readonly tier: PageTier; readonly bytes: Uint8Array } | null;
}

/** Contents and failures of a spill folder. */
export interface SpillStats {
  readonly numPages: number;
  readonly sizeBytes: number;
  readonly limitBytes: number;
  readonly numWrites: number;
  readonly numReads: number;
  readonly numEvictions: number;
  /** Pages that failed verification; each was dropped. */
  readonly numCorrupt: number;
  /** Failed writes, and the reason of the last one. */
  readonly numFailedWrites: number;
  readonly lastFailure: string | null;
  /** Why the folder's contents are not used: another key or version. */
  readonly ignored: readonly string[];
}

/** Selects the part of the prefix trees to report. */
export interface PrefixQuery {
  /** A tenant; null: all. */
  readonly tenant: string | null;
  /** Maximum depth below the root. */
  readonly maxDepth: number;
  readonly maxNodes: number;
  /** Tokens shown per node. */
  readonly numPreview: number;
}

/** A run of tokens without a branch; plain data. */
export interface PrefixNode {
  readonly id: number;
  /** Null: it starts a prompt. */
  readonly parent: number | null;
  readonly tenant: string;
  readonly adapterHash: string | null;
  /** 0 at the root. */
  readonly depth: number;
  /** Tokens before it. */
  readonly startToken: number;
  readonly numTokens: number;
  readonly numFloatPages: number;
  readonly numPackedPages: number;
  /** Pages referenced by more than the tree. */
  readonly numUsedPages: number;
  readonly isSession: boolean;
  /** Number of prompts that reached it. */
  readonly numUses: number;
  /** Cache calls since the last use. */
  readonly lastUseAgo: number;
  readonly numChildren: number;
  readonly previewIds: readonly number[];
}

export interface PrefixReport {
  readonly pageTokens: number;
  readonly floatPageBytes: number;
  readonly packedPageBytes: number;
  /** Parents before children, most used first. */
  readonly nodes: readonly PrefixNode[];
  /** False: nodes were omitted. */
  readonly isComplete: boolean;
}
