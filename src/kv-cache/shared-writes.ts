import { systemClock, within } from '../core/clock.ts';
import { contentOf, type PageSpace } from './page-content.ts';
import type { PageNames } from './page-names.ts';
import type { SharedSpace, SharedStore } from './shared-store.ts';
import type { KvPage, PrefixTree, TreePlace } from './types.ts';

/** Writes pages to a shared store behind the requests: pages wait in the cache, not as copies. */
export interface SharedWrites {
  /** Pages in the queue, and pages being written. */
  readonly numWaiting: number;
  /** Pages that were evicted while as much as allowed was being written. */
  readonly numDropped: number;
  readonly hasWork: boolean;
  /** Queues the whole pages of a sequence. */
  enqueue(space: SharedSpace, tokens: readonly number[], pages: readonly KvPage[]): void;
  /** Starts to write up to `count` queued pages, as many as may be under way at once. Only between steps. */
  work(count: number): void;
  /** Starts to write a page that is about to be evicted. */
  writeEvicted(space: SharedSpace, page: KvPage, place: TreePlace): void;
  /** Drops the queued pages of these namespaces. */
  forget(spaces: ReadonlySet<SharedSpace>): void;
  /** Writes all idle pages of the tree that are not stored, within the time. */
  drain(tree: Pick<PrefixTree, 'idlePages'>, spaceOf: (namespace: string) => SharedSpace | undefined): Promise<void>;
}

export interface SharedWritesOptions {
  readonly store: Pick<SharedStore, 'canWrite'>;
  readonly sources: Pick<PageSpace, 'memory' | 'states'>;
  readonly names: PageNames;
  readonly now: () => number;
  /** Called when a write has ended, so that the next may begin. */
  readonly onReady: () => void;
}

/** Keys of pages evicted long ago must not pile up. */
const MAX_WAITING = 1 << 16;
/** Copies of pages on their way to the storage: a few large pages, or many small ones. */
const MAX_BYTES_UNDER_WAY = 64 * 2 ** 20;
const MAX_WRITES_UNDER_WAY = 16;
/** How long the end of a process waits for its pages to be stored. */
export const DRAIN_MS = 20_000;

interface Waiting {
  readonly page: KvPage;
  readonly space: SharedSpace;
  readonly key: string;
}

export function createSharedWrites({ store, sources, names, now, onReady }: SharedWritesOptions): SharedWrites {
  const { pageTokens } = sources.memory;
  const waiting: Waiting[] = [];
  const underWay = new Set<Promise<void>>();
  let next = 0;
  let numBytes = 0;
  let numDropped = 0;

  /** One page is always allowed, however large. */
  const hasSlot = (): boolean =>
    underWay.size === 0 || (underWay.size < MAX_WRITES_UNDER_WAY && numBytes < MAX_BYTES_UNDER_WAY);

  function start({ page, space, key }: Waiting): void {
    const bytes = contentOf(sources, page).slice();
    numBytes += bytes.length;
    const write = space.write(key, page.tier, bytes).then(() => {
      numBytes -= bytes.length;
      underWay.delete(write);
      onReady();
    });
    underWay.add(write);
  }

  function work(count: number): void {
    if (!store.canWrite) return;
    for (let left = count; left > 0 && next < waiting.length && hasSlot(); next++) {
      const one = waiting[next]!;
      // Evicted meanwhile: that has begun to write it.
      if (one.page.numRefs === 0 || one.space.isStored(one.key)) continue;
      start(one);
      left--;
    }
    // Not at every page: removing from the front moves all the others.
    if (next < waiting.length && next < MAX_WAITING) return;
    waiting.splice(0, next);
    next = 0;
  }

  function add(one: Waiting): void {
    if (!one.space.isStored(one.key) && waiting.length - next < MAX_WAITING) waiting.push(one);
  }

  return {
    get numWaiting() {
      return waiting.length - next + underWay.size;
    },
    get numDropped() {
      return numDropped;
    },
    get hasWork() {
      return next < waiting.length && store.canWrite && hasSlot();
    },
    enqueue(space, tokens, pages) {
      let index = 0;
      for (const key of names.keysOf(space, tokens)) {
        const page = pages[index++];
        if (page === undefined) return;
        names.remember(page, key);
        add({ page, space, key });
      }
    },
    work,
    writeEvicted(space, page, place) {
      if (place.tokens.length !== pageTokens || !store.canWrite) return;
      const key = names.keyOf(space, page, place);
      if (key === null || space.isStored(key)) return;
      if (hasSlot()) start({ page, space, key });
      else numDropped++;
    },
    forget(spaces) {
      waiting.splice(0, waiting.length, ...waiting.slice(next).filter(({ space }) => !spaces.has(space)));
      next = 0;
    },
    async drain(tree, spaceOf) {
      const endMs = now() + DRAIN_MS;
      for (const { page, place } of tree.idlePages()) {
        const space = spaceOf(place.namespace);
        if (space === undefined || place.tokens.length !== pageTokens) continue;
        const key = names.keyOf(space, page, place);
        if (key !== null) add({ page, space, key });
      }
      for (work(Infinity); underWay.size > 0 && now() < endMs; work(Infinity)) {
        await within(systemClock, endMs - now(), Promise.race(underWay));
      }
    },
  };
}
