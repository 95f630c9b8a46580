import { expect, test } from 'vitest';
import { createFakeTree } from './fake-pages.contract.ts';
import { createPageFetches, type PageWish } from './page-fetch.ts';
import type { PageContent } from './page-content.ts';
import { createTransferSpeed } from './transfer-speed.ts';

const PAGE_TOKENS = 4;
const count = (length: number, first = 0): number[] => Array.from({ length }, (_, i) => first + i);

/** A store whose reads end when told. */
function setUp({ timeoutMs = 1000, computeMs = null as number | null } = {}) {
  const { tree, pool } = createFakeTree(PAGE_TOKENS);
  const clock = { ms: 0 };
  const speed = createTransferSpeed(() => clock.ms);
  if (computeMs !== null) speed.onComputed(1, computeMs);
  const asked: string[] = [];
  const reads = new Map<string, (content: PageContent | null) => void>();
  const signals: AbortSignal[] = [];
  let numReady = 0;
  let numRestored = 0;
  let numLeft = Infinity;
  const fetches = createPageFetches({
    sources: {
      memory: { pageTokens: PAGE_TOKENS, pageBytes: 2, packed: null, bytesOf: () => new Uint8Array(2), packPages: () => Promise.resolve(), copyPage() {} }, // prettier-ignore
      pool: { retain: pool.retain, release: pool.release, allocate: (_, length) => pool.create(length) },
      states: null,
      makeRoom: () => numLeft-- > 0,
    },
    tree,
    findLocal: () => [],
    speed,
    timeoutMs,
    now: () => clock.ms,
    onReady: () => numReady++,
    onRestored: (length) => (numRestored += length),
  });
  const space = {
    rootKey: '',
    childKey: (parent: string) => parent,
    isStored: () => false,
    write: () => Promise.resolve(true),
    read(key: string, maxBytes: number, signal: AbortSignal): Promise<PageContent | null> {
      expect(maxBytes).toBe(2);
      asked.push(key);
      signals.push(signal);
      return new Promise((resolve) => reads.set(key, resolve));
    },
  };
  const wish = (numPages: number, more: Partial<PageWish> = {}): PageWish => ({
    namespace: 'a',
    space,
    tokens: count(numPages * PAGE_TOKENS),
    keys: count(numPages).map(String),
    first: 0,
    retention: 'ordinary',
    ...more,
  });
  async function arrive(...keys: number[]): Promise<void> {
    for (const key of keys) reads.get(`${key}`)!({ tier: 'float', bytes: new Uint8Array(2) });
    for (let i = 0; i < 4; i++) await Promise.resolve();
  }
  async function miss(key: number): Promise<void> {
    reads.get(`${key}`)!(null);
    for (let i = 0; i < 4; i++) await Promise.resolve();
  }
  const numCached = (numPages: number, namespace = 'a'): number =>
    tree.match(namespace, count(numPages * PAGE_TOKENS)).pages.length;
  const leave = (length: number): void => void (numLeft = length);
  return { fetches, tree, clock, speed, asked, signals, wish, arrive, miss, numCached, leave, counts: () => [numReady, numRestored] }; // prettier-ignore
}

test('reads one page, then two ahead, then twice as many each time, at most 16', async () => {
  const { fetches, asked, wish, arrive } = setUp();
  fetches.start(wish(100));
  expect(asked).toEqual(['0']);
  const windows: number[] = [];
  for (let i = 0; i < 8; i++) {
    await arrive(i);
    fetches.settle();
    windows.push(asked.length - (i + 1));
  }
  // Pages under way behind the i + 1 that have arrived.
  expect(windows).toEqual([2, 4, 8, 16, 16, 16, 16, 16]);
});

test('no page behind the end of the prompt is asked for', async () => {
  const { fetches, asked, wish, arrive, numCached, counts } = setUp();
  const fetch = fetches.start(wish(3));
  await arrive(0);
  fetches.settle();
  expect([asked, fetch.isDone, numCached(3)]).toEqual([['0', '1', '2'], false, 1]);
  await arrive(2); // before the page in front of it
  fetches.settle();
  expect([fetch.isDone, numCached(3)]).toEqual([false, 1]);
  await arrive(1);
  fetches.settle();
  expect([fetch.isDone, numCached(3), fetches.size, counts()]).toEqual([true, 3, 0, [3, 3]]);
});

test('a page that is not stored ends the search there', async () => {
  const { fetches, asked, signals, wish, arrive, miss, numCached } = setUp();
  const fetch = fetches.start(wish(9));
  await arrive(0);
  await miss(1);
  expect([asked, fetch.isDone]).toEqual([['0', '1'], false]);
  fetches.settle();
  expect([asked, fetch.isDone, numCached(9), signals[0]!.reason]).toEqual([
    ['0', '1'],
    true,
    1,
    'all pages have arrived',
  ]);
});

test('the first page and further ones are measured apart', async () => {
  const { fetches, clock, speed, wish, arrive } = setUp();
  clock.ms = 100;
  fetches.start(wish(3));
  clock.ms = 130;
  await arrive(0);
  expect([speed.firstMs, speed.nextMs]).toEqual([30, null]);
  clock.ms = 140;
  await arrive(1);
  clock.ms = 150;
  await arrive(2);
  clock.ms = 190; // the end of the step does not count
  fetches.settle();
  expect([speed.firstMs, speed.nextMs]).toEqual([30, 10]);
  const alone = setUp();
  alone.fetches.start(alone.wish(1));
  alone.clock.ms = 7;
  await alone.arrive(0);
  alone.fetches.settle();
  expect([alone.speed.firstMs, alone.speed.nextMs]).toEqual([7, null]);
});

test('a request waits until the time limit, or until its missing pages could be computed', async () => {
  for (const [computeMs, limitMs] of [
    [null, 50],
    [20, 50],
    [10, 30],
  ] as const) {
    // prettier-ignore
    const { fetches, clock, speed, wish, signals } = setUp({ timeoutMs: 50, computeMs });
    const fetch = fetches.start(wish(5, { first: 2 }));
    clock.ms = limitMs - 1;
    fetches.settle();
    expect([computeMs, fetch.isDone, fetches.numLate]).toEqual([computeMs, false, 0]);
    clock.ms = limitMs;
    fetches.settle();
    expect([fetch.isDone, fetches.numLate, fetches.size, speed.firstMs]).toEqual([true, 1, 0, limitMs]);
    expect(signals[0]!.reason).toBe('the request did not wait any longer');
  }
});

test('a late request keeps what has arrived, and its wait counts for the pages after the first', async () => {
  for (const [arrived, nextMs] of [
    [1, 90],
    [2, 90],
    [3, 45],
    [4, 30],
  ] as const) {
    // prettier-ignore
    const { fetches, clock, speed, wish, arrive, numCached } = setUp({ timeoutMs: 100 });
    const fetch = fetches.start(wish(9));
    clock.ms = 10;
    for (let i = 0; i < arrived; i++) {
      await arrive(i);
      fetches.settle();
    }
    clock.ms = 100;
    fetches.settle();
    expect([fetch.isDone, numCached(9)]).toEqual([true, arrived]);
    expect([arrived, speed.firstMs, speed.nextMs]).toEqual([arrived, 10, nextMs]);
  }
});

test('requests with one prompt read it once; another prompt, namespace or beginning is read on its own', () => {
  const { fetches, asked, wish } = setUp();
  fetches.start(wish(3));
  fetches.start(wish(3));
  expect([fetches.size, asked]).toEqual([1, ['0']]);
  fetches.start(wish(3, { namespace: 'b' }));
  fetches.start(wish(3, { first: 1 }));
  fetches.start(wish(4));
  expect([fetches.size, asked]).toEqual([4, ['0', '0', '1', '0']]);
});

test('a fetch ends with the last request that waits for it, or with its namespace', async () => {
  const { fetches, signals, wish, arrive, numCached, counts } = setUp();
  const [first, second] = [fetches.start(wish(3)), fetches.start(wish(3))];
  first.cancel();
  first.cancel();
  expect([first.isDone, fetches.size]).toEqual([false, 1]);
  second.cancel();
  expect([first.isDone, second.isDone, fetches.size, signals[0]!.reason]).toEqual([true, true, 0, 'no request waits for it']); // prettier-ignore
  await arrive(0); // too late
  expect([numCached(3), counts()]).toEqual([0, [0, 0]]);

  const mine = fetches.start(wish(3));
  const other = fetches.start(wish(3, { namespace: 'b' }));
  fetches.cancel('a');
  expect([mine.isDone, other.isDone, fetches.size]).toEqual([true, false, 1]);
  fetches.cancel('c');
  expect(other.isDone).toBe(false);
  fetches.cancel();
  expect([other.isDone, fetches.size]).toEqual([true, 0]);
});

test('a fetch ends when memory is short, with the pages that fitted', async () => {
  const { fetches, wish, arrive, numCached, leave, counts } = setUp();
  const fetch = fetches.start(wish(9));
  await arrive(0);
  await arrive(1);
  leave(1);
  fetches.settle();
  expect([fetch.isDone, numCached(9), fetches.size, counts()]).toEqual([true, 1, 0, [2, 1]]);
});

test('a fetch ends when the pages before it are gone', async () => {
  const { fetches, wish, arrive, numCached } = setUp();
  const fetch = fetches.start(wish(9, { first: 1 }));
  await arrive(1);
  fetches.settle();
  expect([fetch.isDone, numCached(9), fetches.size]).toEqual([true, 0, 0]);
});

test('resolves when a page has arrived', async () => {
  const { fetches, wish, arrive } = setUp();
  fetches.start(wish(2));
  const { next } = fetches;
  let numArrived = 0;
  void next.then(() => numArrived++);
  await Promise.resolve();
  expect(numArrived).toBe(0);
  await arrive(0);
  expect(numArrived).toBe(1);
  expect(fetches.next).not.toBe(next);
});
