import { admitSpace } from './admit-space.ts';
import { type CacheNamespace, decodeNamespace } from './cache-namespace.ts';
import type { ImageKeys } from './image-keys.ts';
import type { PageSpace } from './page-content.ts';
import { createPageFetches, type PageFetch, type PageFetches } from './page-fetch.ts';
import { createPageNames } from './page-names.ts';
import type { SharedSpace, SharedStore, SharedStoreStats } from './shared-store.ts';
import { createSharedWrites } from './shared-writes.ts';
import type { SpillQueue } from './spill-queue.ts';
import { createTransferSpeed } from './transfer-speed.ts';
import type { KvPage, PagePool, PrefixTree, Retention, TreePlace } from './types.ts';

/** The tier behind this node's memory and disk: pages that other nodes computed, and pages for them. */
export interface SharedPages {
  readonly fetches: Pick<PageFetches, 'size' | 'next' | 'settle'>;
  readonly hasWork: boolean;
  /** Enables a namespace. */
  admit(namespace: CacheNamespace): void;
  /** Reads the pages that follow what this node has of a prompt; null: nothing to wait for. */
  fetch(namespace: string, tokens: readonly number[], retention: Retention): PageFetch | null;
  /** Queues the whole pages of a sequence. */
  enqueue(namespace: string, tokens: readonly number[], pages: readonly KvPage[]): void;
  writeEvicted(page: KvPage, place: TreePlace): void;
  /** Starts to write up to `count` queued pages, between two steps. */
  work(count: number): void;
  /** A step computed this many tokens of prompts. */
  onComputed(numTokens: number, elapsedMs: number): void;
  /** Drops the queued pages of a tenant, and those on their way. */
  forgetTenant(tenant: string): void;
  stats(): SharedStats;
  /** Stores what is not stored yet, within a time limit, and ends. */
  close(): Promise<void>;
}

/** Use of a shared store. */
export interface SharedStats extends SharedStoreStats {
  /** Pages that wait to be written, and pages that were evicted before they could be. */
  readonly numWaiting: number;
  readonly numDropped: number;
  /** Requests that did not read because computing was expected to be faster, and requests that stopped waiting. */
  readonly numSkipped: number;
  readonly numLate: number;
  /** Averages, in milliseconds: computing a page, reading the first page of a prompt, reading each further one. Null: not measured. */
  readonly computeMs: number | null;
  readonly firstMs: number | null;
  readonly nextMs: number | null;
}

export interface SharedPagesOptions {
  readonly store: SharedStore;
  readonly sources: PageSpace & { readonly pool: Pick<PagePool, 'retain' | 'release'> };
  readonly tree: PrefixTree;
  readonly spill: Pick<SpillQueue, 'find'> | null;
  readonly images: ImageKeys;
  /** The longest a request waits. */
  readonly timeoutMs: number;
  readonly now: () => number;
  /** Called when there is work again. */
  readonly onReady: () => void;
  readonly onRestored: (numPages: number) => void;
}

export function createSharedPages(options: SharedPagesOptions): SharedPages {
  const { store, sources, tree, spill, now, onReady } = options;
  const { pageTokens } = sources.memory;
  const names = createPageNames(options.images, pageTokens);
  const speed = createTransferSpeed(now);
  const writes = createSharedWrites({ store, sources, names, now, onReady });
  const findLocal = (namespace: string, tokens: readonly number[], numKnown: number) =>
    spill?.find(namespace, tokens, numKnown) ?? [];
  const { timeoutMs, onRestored } = options;
  const fetches = createPageFetches({ sources, tree, findLocal, speed, timeoutMs, now, onReady, onRestored });
  const spaces = new Map<string, SharedSpace>();
  let numSkipped = 0;

  return {
    fetches,
    get hasWork() {
      return writes.hasWork;
    },
    admit: (namespace) => admitSpace(spaces, store, namespace),
    fetch(namespace, tokens, retention) {
      const space = spaces.get(namespace);
      if (space === undefined || !store.canRead) return null;
      const prefix = tokens.slice(0, -1); // the last token is always computed
      const inMemory = tree.match(namespace, prefix).pages.length;
      const first = inMemory + findLocal(namespace, prefix, inMemory).length;
      const numMissing = Math.floor(prefix.length / pageTokens) - first;
      if (numMissing <= 0) return null;
      if (!speed.isWorthwhile(numMissing)) {
        numSkipped++;
        return null;
      }
      const keys = [...names.keysOf(space, prefix)];
      return keys.length <= first ? null : fetches.start({ namespace, space, tokens: prefix, keys, first, retention });
    },
    enqueue(namespace, tokens, pages) {
      const space = spaces.get(namespace);
      if (space !== undefined) writes.enqueue(space, tokens, pages);
    },
    writeEvicted(page, place) {
      const space = spaces.get(place.namespace);
      if (space !== undefined) writes.writeEvicted(space, page, place);
    },
    work: (count) => writes.work(count),
    onComputed(numTokens, elapsedMs) {
      // The steps of running answers compute few tokens, each far slower than one of a prompt.
      if (numTokens >= pageTokens) speed.onComputed(numTokens / pageTokens, elapsedMs);
    },
    forgetTenant(tenant) {
      const theirs = [...spaces].filter(([id]) => decodeNamespace(id)?.tenant === tenant);
      writes.forget(new Set(theirs.map(([, space]) => space)));
      for (const [id] of theirs) {
        fetches.cancel(id);
        spaces.delete(id);
      }
    },
    stats: () => ({
      ...store.stats(),
      numWaiting: writes.numWaiting,
      numDropped: writes.numDropped,
      numSkipped,
      numLate: fetches.numLate,
      computeMs: speed.computeMs,
      firstMs: speed.firstMs,
      nextMs: speed.nextMs,
    }),
    async close() {
      fetches.cancel();
      await writes.drain(tree, (namespace) => spaces.get(namespace));
      await store.close();
    },
  };
}
