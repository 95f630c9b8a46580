import type { CacheNamespace } from './cache-namespace.ts';
import type { PrefixQuery, PrefixReport } from './describe-prefixes.ts';

/** How a page keeps K and V: as the kernels wrote them, or rounded by `packPages`. */
export type PageTier = 'float' | 'packed';

/**
 * A page in memory. Everyone who reads it holds the object and counts as a reference; where its bytes are changes under
 * them when it is packed or moved, so `tier` and `index` are read when a step is built and never kept.
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
  /** Byte ranges inside the region; each is one slab, and nothing larger than a slab is contiguous. */
  readonly slabs: readonly { readonly offset: number; readonly sizeBytes: number }[];
}

export interface PagePoolOptions {
  /** Float pages the whole region holds: the budget in pages. */
  readonly numPages: number;
  readonly pageBytes: number;
  /** Packed pages are named by byte offset / unitBytes; null: nothing is packed. */
  readonly packed: { readonly pageBytes: number; readonly unitBytes: number } | null;
  /** Float pages in a slab; default: chosen so that little is lost in either tier. */
  readonly slabPages?: number;
  /** Copies a page to another place of the same tier; called while no step runs. */
  readonly copyPage: (tier: PageTier, from: number, to: number) => void;
}

/**
 * One region of memory, cut into slabs; a slab holds float pages, packed pages, or belongs to a reservation. Never takes
 * more than the region: that is the budget.
 */
export interface PagePool {
  readonly budgetBytes: number;
  /** Whole slabs, and pages in each; 0: the tier does not exist. */
  readonly numSlabs: number;
  readonly slabPages: Readonly<Record<PageTier, number>>;
  /** What moving pages together could not give back: whole slabs by tier, and reservations. */
  readonly usedBytes: number;
  /** The most `usedBytes` has been. */
  readonly peakBytes: number;
  /** Pages of this tier that are in use. */
  numPages(tier: PageTier): number;
  /** Pages of this tier that could be had if nothing else was taken. */
  numFreePages(tier: PageTier): number;
  /** True when `allocate` would succeed, moving pages of other slabs together where that is needed. No effect. */
  canAllocate(tier: PageTier, count: number): boolean;
  /** `count` pages with one reference each; throws `out_of_memory` with the numbers, and changes nothing, when `canAllocate` is false. */
  allocate(tier: PageTier, count: number): KvPage[];
  retain(page: KvPage): void;
  /** One reference less; a page without references is free and must not be used again. */
  release(page: KvPage): void;
  /**
   * Takes packed places for `pages` (float, in use) and returns where to pack from and to. The pages stay what they are until
   * `finishPack` of the same ticket; null when there is no room.
   */
  beginPack(pages: readonly KvPage[]): PackTicket | null;
  /** The bytes are packed: the pages now are, and their float places are free. Pages released meanwhile are freed. */
  finishPack(ticket: PackTicket): void;
  /** Gives the packed places back; the pages stay float. */
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
  /** Page of the float region, page of the packed region. */
  readonly moves: readonly { readonly from: number; readonly to: number }[];
}

/** Who shall be evicted last. `session`: a conversation that is likely to go on. */
export type Retention = 'ordinary' | 'session';

/** What a tree knows of the beginning of a prompt. */
export interface PrefixMatch {
  /** Whole pages, from the first token on. */
  readonly pages: readonly KvPage[];
  /** A page of which the next `numTokens` tokens are the prompt's too, the rest not: to be copied before it is written to. */
  readonly partial: { readonly page: KvPage; readonly numTokens: number } | null;
}

/** Pages by the tokens in them, in a radix tree for each namespace. Holds one reference to each page in it. */
export interface PrefixTree {
  readonly numPages: number;
  readonly numNodes: number;
  /** The longest known beginning of `tokens`. Counts as no use: see `touch`. */
  match(namespace: string, tokens: ArrayLike<number>): PrefixMatch;
  /** The pages of a match were used just now. */
  touch(namespace: string, tokens: ArrayLike<number>, numTokens: number): void;
  /**
   * Makes the first `numTokens` tokens known by these pages (one for each `pageTokens` tokens; the last may be partly filled).
   * Where a page with the same tokens is known already, that one stays: the result says which page to use for each.
   */
  insert(
    namespace: string,
    tokens: ArrayLike<number>,
    numTokens: number,
    pages: readonly KvPage[],
    retention: Retention,
  ): readonly KvPage[];
  /** Pages that only the tree refers to: all of them could be evicted, ends before beginnings. */
  numIdlePages(retention?: Retention): number;
  /**
   * Drops idle pages, the least valuable first, until `isEnough()`; `retention: 'ordinary'` spares sessions. `onEvict` hears of
   * each before it is released. Returns the number dropped.
   */
  evict(options: {
    readonly retention: Retention;
    readonly isEnough: () => boolean;
    readonly onEvict?: (page: KvPage, place: TreePlace) => void;
  }): number;
  /** All idle pages, the most valuable first. */
  idlePages(): Iterable<{ readonly page: KvPage; readonly place: TreePlace }>;
  /** A bounded part of what is known, for people to look at. */
  describe(query: PrefixQuery): Pick<PrefixReport, 'nodes' | 'isComplete'>;
  /** The pages that sessions keep. */
  sessionPages(): Iterable<KvPage>;
  /** Forgets a namespace; pages in use by others stay theirs. */
  drop(namespace: string): void;
  /** One list for each namespace: what the pool counts references from. */
  owners(): Iterable<readonly KvPage[]>;
  /** Throws `internal` when the tree breaks a rule of its own. */
  checkIntegrity(): void;
}

/** Where in a tree a page is. */
export interface TreePlace {
  readonly namespace: string;
  /** The tokens of this page. */
  readonly tokens: Int32Array;
  /** How often `touch` has reached it. */
  readonly numUses: number;
  /** The page before it, or null for the first. */
  readonly parent: () => { readonly page: KvPage; readonly place: TreePlace } | null;
}

/** Pages on disk (or anywhere that outlives the process), sealed. Never throws for what the disk does. */
export interface SpillStore {
  /** The part of the store that belongs to one namespace. */
  open(namespace: CacheNamespace): SpillSpace;
  stats(): SpillStats;
  close(): void;
}

export interface SpillSpace {
  /** Key of the empty prefix. Secret to whoever does not have the tenant's key. */
  readonly rootKey: string;
  /** Key of the page with these tokens behind the page `parentKey`. */
  childKey(parentKey: string, tokens: ArrayLike<number>): string;
  has(key: string): boolean;
  /** Keeps a page; false when that was not possible, which `stats` explains. */
  write(key: string, tier: PageTier, bytes: Uint8Array): boolean;
  /** The page as it was written, or null when it is not there or not whole: then `has` is false from now on. */
  read(key: string): { readonly tier: PageTier; readonly bytes: Uint8Array } | null;
}

/** What a spill folder holds, and how it fared. */
export interface SpillStats {
  readonly numPages: number;
  readonly sizeBytes: number;
  readonly limitBytes: number;
  readonly numWrites: number;
  readonly numReads: number;
  readonly numEvictions: number;
  /** Pages that were not what was written: each was dropped. */
  readonly numCorrupt: number;
  /** Writes that failed, and why the last one did. */
  readonly numFailedWrites: number;
  readonly lastFailure: string | null;
  /** What in the folder is not ours to use: another key, another version. */
  readonly ignored: readonly string[];
}
