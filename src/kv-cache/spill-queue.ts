import { admitSpace } from './admit-space.ts';
import { type CacheNamespace, decodeNamespace } from './cache-namespace.ts';
import type { ImageKeys } from './image-keys.ts';
import { contentOf } from './page-content.ts';
import type { PageMemory } from './page-memory.ts';
import { createPageNames } from './page-names.ts';
import type { StateShelf } from './state-shelf.ts';
import type { KvPage, SpillSpace, SpillStats, SpillStore, TreePlace } from './types.ts';

/**
 * Which pages are on disk and which are queued. Pages are written when evicted, and in the background: written pages
 * survive any end of the process.
 */
export interface SpillQueue {
  /** Pages waiting to be written. */
  readonly numWaiting: number;
  /** Enables writes of this namespace. */
  admit(namespace: CacheNamespace): void;
  /** Queues the whole pages of a sequence for `writeSome`. */
  enqueue(namespace: string, tokens: readonly number[], pages: readonly KvPage[]): void;
  /** Writes up to `count` queued pages. */
  writeSome(count: number): void;
  /** Writes a page that is about to be evicted, unless it is on disk; true if it was written. */
  writeEvicted(page: KvPage, place: TreePlace): boolean;
  /** The pages of a prompt on disk that follow the first `numKnown` without a gap. */
  find(namespace: string, tokens: readonly number[], numKnown: number): readonly StoredPage[];
  /** Drops a tenant's queued pages and erases the stored ones. */
  eraseTenant(tenant: string, options: { readonly keepsKey: boolean }): void;
  /** Queued and stored pages of a tenant. */
  numPagesOf(tenant: string): number;
  stats(): SpillStats;
  close(): void;
}

export interface StoredPage {
  /** The stored page; null if it is damaged or gone. */
  read(): ReturnType<SpillSpace['read']>;
}

/** Bounded: otherwise keys of pages evicted long ago would pile up. */
const MAX_WAITING = 1 << 16;

export function createSpillQueue(
  store: SpillStore,
  memory: PageMemory,
  images: ImageKeys,
  states: StateShelf | null = null,
): SpillQueue {
  const { pageTokens } = memory;
  const spaces = new Map<string, SpillSpace>();
  const names = createPageNames(images, pageTokens);
  const waiting: { readonly page: KvPage; readonly space: SpillSpace; readonly key: string }[] = [];
  let next = 0;

  const spacesOf = (tenant: string): ReadonlyMap<SpillSpace, string> =>
    new Map([...spaces].flatMap(([id, space]) => (decodeNamespace(id)?.tenant === tenant ? [[space, id]] : [])));

  function write(space: SpillSpace, key: string, page: KvPage): boolean {
    return !space.has(key) && space.write(key, page.tier, contentOf({ memory, states }, page));
  }

  return {
    get numWaiting() {
      return waiting.length - next;
    },
    admit: (namespace) => admitSpace(spaces, store, namespace),
    enqueue(namespace, tokens, pages) {
      const space = spaces.get(namespace);
      if (space === undefined) return;
      let index = 0;
      for (const key of names.keysOf(space, tokens)) {
        const page = pages[index++];
        if (page === undefined) return;
        names.remember(page, key);
        if (!space.has(key) && waiting.length - next < MAX_WAITING) waiting.push({ page, space, key });
      }
    },
    writeSome(count) {
      for (let left = count; left > 0 && next < waiting.length; next++) {
        const { page, space, key } = waiting[next]!;
        if (page.numRefs === 0 || space.has(key)) continue; // evicted meanwhile and written then
        write(space, key, page);
        left--;
      }
      // Not at every page: removing from the front moves all the others.
      if (next < waiting.length && next < MAX_WAITING) return;
      waiting.splice(0, next);
      next = 0;
    },
    writeEvicted(page, place) {
      const space = spaces.get(place.namespace);
      if (space === undefined || place.tokens.length !== pageTokens) return false;
      const key = names.keyOf(space, page, place);
      return key !== null && write(space, key, page);
    },
    find(namespace, tokens, numKnown) {
      const space = spaces.get(namespace);
      if (space === undefined) return [];
      const found: StoredPage[] = [];
      let index = 0;
      for (const key of names.keysOf(space, tokens)) {
        if (index++ < numKnown) continue;
        if (!space.has(key)) break;
        found.push({ read: () => space.read(key) });
      }
      return found;
    },
    eraseTenant(tenant, options) {
      const theirs = spacesOf(tenant);
      waiting.splice(0, waiting.length, ...waiting.slice(next).filter(({ space }) => !theirs.has(space)));
      next = 0;
      // Opened again, with another key, by the next request.
      for (const id of theirs.values()) spaces.delete(id);
      store.eraseTenant(tenant, options);
    },
    numPagesOf(tenant) {
      const theirs = spacesOf(tenant);
      return store.numPagesOf(tenant) + waiting.slice(next).filter(({ space }) => theirs.has(space)).length;
    },
    stats: () => store.stats(),
    close: () => store.close(),
  };
}
