import { type PageContent, maxContentBytes, type PageSpace, placeContent } from './page-content.ts';
import { type SharedSpace, TOO_LATE } from './shared-store.ts';
import type { TransferSpeed } from './transfer-speed.ts';
import type { KvPage, PagePool, PrefixTree, Retention } from './types.ts';

/** Pages of a prompt on their way from a shared store. The request waits until it is done; it has a time limit. */
export interface PageFetch {
  readonly isDone: boolean;
  /** The request does not wait any longer. */
  cancel(): void;
}

/** Pages on their way for all requests. */
export interface PageFetches {
  readonly size: number;
  /** Resolves when a page has arrived. */
  readonly next: Promise<void>;
  /** Requests that stopped waiting because computing was faster. */
  readonly numLate: number;
  start(wish: PageWish): PageFetch;
  /** Between two steps: inserts the pages that have arrived. */
  settle(): void;
  /** Ends those of this namespace, or all: nothing more of it arrives. */
  cancel(namespace?: string): void;
}

/** The pages `first` to `keys.length` of a prompt. */
export interface PageWish {
  readonly namespace: string;
  readonly space: SharedSpace;
  readonly tokens: readonly number[];
  readonly keys: readonly string[];
  readonly first: number;
  readonly retention: Retention;
}

export interface PageFetchOptions {
  readonly sources: PageSpace & { readonly pool: Pick<PagePool, 'retain' | 'release'> };
  readonly tree: Pick<PrefixTree, 'match' | 'insert'>;
  /** Pages on this node's own disk that follow the first `numKnown`. */
  readonly findLocal: (namespace: string, tokens: readonly number[], numKnown: number) => Iterable<StoredPage>;
  readonly speed: TransferSpeed;
  readonly timeoutMs: number;
  readonly now: () => number;
  /** Called when a page has arrived. */
  readonly onReady: () => void;
  readonly onRestored: (numPages: number) => void;
}

interface StoredPage {
  read(): PageContent | null;
}

/** Reads at once: the first one alone, because most prompts have no page, then twice as many each time. */
const MAX_WINDOW = 16;

interface Fetch extends PageWish {
  numWaiting: number;
  isDone: boolean;
  /** The first page that is not inserted, not asked for, and the end of what is stored. */
  nextPage: number;
  nextRead: number;
  end: number;
  window: number;
  readonly arrived: Map<number, PageContent>;
  readonly startMs: number;
  firstMs: number | null;
  lastMs: number;
  readonly limitMs: number;
  readonly controller: AbortController;
}

export function createPageFetches(options: PageFetchOptions): PageFetches {
  const { sources, tree, speed, now } = options;
  const { pool, memory } = sources;
  const { pageTokens } = memory;
  const maxBytes = maxContentBytes(sources);
  const fetches = new Set<Fetch>();
  let numLate = 0;
  let notify = (): void => {};
  let next = new Promise<void>((resolve) => (notify = resolve));

  function end(fetch: Fetch, reason: string): void {
    if (fetch.isDone) return;
    fetch.isDone = true;
    fetches.delete(fetch);
    fetch.controller.abort(reason);
    fetch.arrived.clear();
  }

  function onArrival(fetch: Fetch, index: number, content: PageContent | null): void {
    if (fetch.isDone) return;
    const elapsedMs = now() - fetch.startMs;
    if (fetch.firstMs === null) speed.onFirst((fetch.firstMs = elapsedMs));
    fetch.lastMs = elapsedMs;
    if (content === null) fetch.end = Math.min(fetch.end, index);
    else {
      fetch.arrived.set(index, content);
      fetch.window = Math.min(2 * fetch.window, MAX_WINDOW);
      readAhead(fetch);
    }
    notify();
    next = new Promise((resolve) => (notify = resolve));
    options.onReady();
  }

  /** At most a window of pages is under way or waits for the end of a step. */
  function readAhead(fetch: Fetch): void {
    while (fetch.nextRead < Math.min(fetch.end, fetch.nextPage + fetch.window)) {
      const index = fetch.nextRead++;
      const read = fetch.space.read(fetch.keys[index]!, maxBytes, fetch.controller.signal);
      void read.then((content) => onArrival(fetch, index, content));
    }
  }

  /** The first pages of the prompt, from memory and this node's disk, with a reference to each; shorter if one is gone. */
  function takeBefore({ namespace, tokens, nextPage }: Fetch): KvPage[] {
    const before = tokens.slice(0, nextPage * pageTokens);
    const pages = [...tree.match(namespace, before).pages];
    for (const page of pages) pool.retain(page);
    for (const stored of options.findLocal(namespace, before, pages.length)) {
      const content = stored.read();
      const page = content && placeContent(sources, content);
      if (page === null) break;
      pages.push(page);
    }
    return pages;
  }

  /** Inserts the pages that continue what is cached; false if that is not possible any more. */
  function insertArrived(fetch: Fetch): boolean {
    if (!fetch.arrived.has(fetch.nextPage)) return true;
    const pages = takeBefore(fetch);
    const isComplete = pages.length === fetch.nextPage;
    let numPlaced = 0;
    let hasFailed = !isComplete;
    for (let content; !hasFailed && (content = fetch.arrived.get(fetch.nextPage)) !== undefined;) {
      const page = placeContent(sources, content);
      hasFailed = page === null;
      if (page === null) break;
      pages.push(page);
      fetch.arrived.delete(fetch.nextPage++);
      numPlaced++;
    }
    if (isComplete) tree.insert(fetch.namespace, fetch.tokens, pages.length * pageTokens, pages, fetch.retention);
    for (const page of pages) pool.release(page);
    options.onRestored(numPlaced);
    return !hasFailed;
  }

  function settle(fetch: Fetch): void {
    const isPossible = insertArrived(fetch);
    const isLate = now() - fetch.startMs >= fetch.limitMs;
    if (!isPossible || fetch.nextPage >= fetch.end) {
      const numNext = fetch.nextPage - fetch.first - 1;
      if (numNext > 0) speed.onNext(numNext, fetch.lastMs - fetch.firstMs!);
      end(fetch, 'all pages have arrived');
    } else if (isLate) {
      numLate++;
      const elapsedMs = now() - fetch.startMs;
      if (fetch.firstMs === null) speed.onFirst(elapsedMs);
      else speed.onNext(Math.max(1, fetch.nextPage - fetch.first - 1), elapsedMs - fetch.firstMs);
      end(fetch, TOO_LATE);
    } else readAhead(fetch);
  }

  return {
    get size() {
      return fetches.size;
    },
    get next() {
      return next;
    },
    get numLate() {
      return numLate;
    },
    start(wish) {
      const { namespace, keys, first } = wish;
      // Several requests with one prompt read it once.
      const same = [...fetches].find(
        (other) => other.namespace === namespace && other.first === first && other.keys.at(-1) === keys.at(-1),
      );
      const computeMs = speed.computeMs === null ? Infinity : (keys.length - first) * speed.computeMs;
      const fetch: Fetch = same ?? {
        ...wish,
        numWaiting: 0,
        isDone: false,
        nextPage: first,
        nextRead: first,
        end: keys.length,
        window: 1,
        arrived: new Map(),
        startMs: now(),
        firstMs: null,
        lastMs: 0,
        limitMs: Math.min(options.timeoutMs, computeMs),
        controller: new AbortController(),
      };
      fetch.numWaiting++;
      fetches.add(fetch);
      if (same === undefined) readAhead(fetch);
      let isWaiting = true;
      return {
        get isDone() {
          return fetch.isDone;
        },
        cancel() {
          if (isWaiting && --fetch.numWaiting === 0) end(fetch, 'no request waits for it');
          isWaiting = false;
        },
      };
    },
    settle() {
      for (const fetch of fetches) settle(fetch);
    },
    cancel(namespace) {
      for (const fetch of fetches) {
        if (namespace === undefined || fetch.namespace === namespace) end(fetch, 'its pages are not wanted any more');
      }
    },
  };
}
