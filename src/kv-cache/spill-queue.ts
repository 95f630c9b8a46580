import { namespaceId, type CacheNamespace } from './cache-namespace.ts';
import type { PageMemory } from './page-memory.ts';
import type { KvPage, SpillSpace, SpillStats, SpillStore, TreePlace } from './types.ts';

/**
 * Which pages are on disk and which shall be. Pages are written when they are evicted, and behind the requests' backs while
 * there is time: what was written survives the end of the process, whatever ends it.
 */
export interface SpillQueue {
  /** Pages that wait to be written. */
  readonly numWaiting: number;
  /** Pages of this namespace may be written from now on. */
  admit(namespace: CacheNamespace): void;
  /** Remembers the whole pages of a sequence for `writeSome`. */
  enqueue(namespace: string, tokens: readonly number[], pages: readonly KvPage[]): void;
  /** Writes up to `count` of the remembered pages. */
  writeSome(count: number): void;
  /** Writes a page that is about to leave memory, unless it is on disk; true when it was written now. */
  writeEvicted(page: KvPage, place: TreePlace): boolean;
  /** The pages of a prompt that are on disk, as far as they follow the first `numKnown` without a gap. */
  find(namespace: string, tokens: readonly number[], numKnown: number): readonly StoredPage[];
  stats(): SpillStats;
  close(): void;
}

export interface StoredPage {
  /** As it was written; null when it is not whole any more. */
  read(): ReturnType<SpillSpace['read']>;
}

/** More would hold the keys of what was evicted long ago. */
const MAX_WAITING = 1 << 16;

/** Tenants come and go; one that is forgotten here is opened again with its next request. */
const MAX_SPACES = 1024;

export function createSpillQueue(store: SpillStore, memory: PageMemory): SpillQueue {
  const { pageTokens } = memory;
  const spaces = new Map<string, SpillSpace>();
  const keys = new WeakMap<KvPage, string>();
  const waiting: { readonly page: KvPage; readonly space: SpillSpace; readonly key: string }[] = [];
  let next = 0;

  const isWhole = (tokens: ArrayLike<number>): boolean => tokens.length === pageTokens;

  function write(space: SpillSpace, key: string, page: KvPage): boolean {
    return !space.has(key) && space.write(key, page.tier, memory.bytesOf(page.tier, page.index));
  }

  function keyOf(space: SpillSpace, page: KvPage, place: TreePlace): string {
    // Not by recursion: a chain may be thousands of pages long.
    const path: { page: KvPage; place: TreePlace }[] = [];
    let at: { page: KvPage; place: TreePlace } | null = { page, place };
    while (at !== null && !keys.has(at.page)) {
      path.push(at);
      at = at.place.parent();
    }
    let key = at === null ? space.rootKey : keys.get(at.page)!;
    for (const step of path.toReversed()) {
      key = space.childKey(key, step.place.tokens);
      keys.set(step.page, key);
    }
    return key;
  }

  function* keysOf(space: SpillSpace, tokens: readonly number[]): Generator<string> {
    let key = space.rootKey;
    for (let start = 0; start + pageTokens <= tokens.length; start += pageTokens) {
      key = space.childKey(key, tokens.slice(start, start + pageTokens));
      yield key;
    }
  }

  return {
    get numWaiting() {
      return waiting.length - next;
    },
    admit(namespace) {
      const id = namespaceId(namespace);
      const space = spaces.get(id) ?? store.open(namespace);
      spaces.delete(id); // a Map keeps the order of insertion: the first is the one not used for longest
      spaces.set(id, space);
      for (const oldest of spaces.keys()) {
        if (spaces.size <= MAX_SPACES) break;
        spaces.delete(oldest);
      }
    },
    enqueue(namespace, tokens, pages) {
      const space = spaces.get(namespace);
      if (space === undefined) return;
      let index = 0;
      for (const key of keysOf(space, tokens)) {
        const page = pages[index++];
        if (page === undefined) return;
        keys.set(page, key);
        if (!space.has(key) && waiting.length - next < MAX_WAITING) waiting.push({ page, space, key });
      }
    },
    writeSome(count) {
      for (let left = count; left > 0 && next < waiting.length; next++) {
        const { page, space, key } = waiting[next]!;
        if (page.numRefs === 0 || space.has(key)) continue; // evicted meanwhile, and written then
        write(space, key, page);
        left--;
      }
      // Not at every page: taking from the front moves all the rest.
      if (next < waiting.length && next < MAX_WAITING) return;
      waiting.splice(0, next);
      next = 0;
    },
    writeEvicted(page, place) {
      const space = spaces.get(place.namespace);
      if (space === undefined || !isWhole(place.tokens)) return false;
      return write(space, keyOf(space, page, place), page);
    },
    find(namespace, tokens, numKnown) {
      const space = spaces.get(namespace);
      if (space === undefined) return [];
      const found: StoredPage[] = [];
      let index = 0;
      for (const key of keysOf(space, tokens)) {
        if (index++ < numKnown) continue;
        if (!space.has(key)) break;
        found.push({ read: () => space.read(key) });
      }
      return found;
    },
    stats: () => store.stats(),
    close: () => store.close(),
  };
}
