import { expect, test } from 'vitest';
import { createMemorySpill } from '../../test/support/memory-spill.ts';
import { createMemoryShared } from '../../test/support/memory-shared.ts';
import { createToyPages } from '../../test/support/toy-pages.ts';
import { createKvCache, type KvCache, type KvCacheOptions, type SequenceOwner } from './kv-cache.ts';
import type { PageFetch } from './page-fetch.ts';

const PAGE_TOKENS = 4;
const OWNER: SequenceOwner = { tenant: 'a', adapterHash: null, cachePrefix: true, retention: 'ordinary' };
const count = (length: number, first = 0): number[] => Array.from({ length }, (_, i) => first + i);

interface Node {
  cache: KvCache;
  now: { ms: number };
  /** Waits for shared pages, computes the rest and releases. Returns the number of cached tokens. */
  run(tokens: number[], owner?: Partial<SequenceOwner>): Promise<number>;
  stats(): NonNullable<ReturnType<KvCache['stats']>['shared']>;
}

/** As the engine does between two steps. */
async function untilDone({ fetches }: KvCache, fetch: PageFetch): Promise<void> {
  const isDone = (): boolean => fetch.isDone;
  while (!isDone()) {
    await fetches!.next;
    fetches!.settle();
  }
}

function createNode(
  shared: ReturnType<typeof createMemoryShared>,
  { numPages = 16, timeoutMs = 1000, ...options }: Partial<KvCacheOptions> & { timeoutMs?: number } = {},
): Node {
  const toy = createToyPages(numPages, PAGE_TOKENS, false);
  const now = { ms: 0 };
  const cache = createKvCache({
    memory: toy.store,
    numPages,
    maxBatchTokens: 64,
    modelHash: 'model',
    policy: 'f16',
    shared: { store: shared.open(), timeoutMs, now: () => now.ms, onReady: () => {} },
    ...options,
  });
  async function run(tokens: number[], more?: Partial<SequenceOwner>): Promise<number> {
    const owner = { ...OWNER, ...more };
    const pages = cache.openSequence(owner);
    const fetch = cache.fetchShared(owner, tokens);
    if (fetch !== null) await untilDone(cache, fetch);
    const numFound = pages.attach(tokens, Infinity, 0)!;
    for (let i = numFound; i < tokens.length; i++) toy.write(pages.slotOf(i), tokens[i]!, i, pages.table());
    expect(toy.readBack(pages.table(), tokens.length)).toEqual(tokens); // the right pages at the right places
    pages.release(tokens, tokens.length);
    pages.end();
    while (cache.hasBackgroundWork) cache.workInBackground();
    await shared.settled();
    cache.checkIntegrity([]);
    return numFound;
  }
  return { cache, now, run, stats: () => cache.stats().shared! };
}

test('[SH9] pages of a finished sequence are found by another node, and only by the same tenant, adapter and policy', async () => {
  const shared = createMemoryShared();
  const prompt = count(14);
  expect(await createNode(shared).run(prompt)).toBe(0);
  expect(await createNode(shared).run(prompt)).toBe(12);
  expect(await createNode(shared).run([...prompt, 99, 98])).toBe(12);
  expect(await createNode(shared).run(prompt, { tenant: 'b' })).toBe(0);
  expect(await createNode(shared).run(prompt, { adapterHash: 'x' })).toBe(0);
  expect(await createNode(shared, { policy: 'f32' }).run(prompt)).toBe(0);
  expect(await createNode(shared, { modelHash: 'other' }).run(prompt)).toBe(0);
});

test('[SH9] private sequences neither read nor leave pages', async () => {
  const shared = createMemoryShared();
  await createNode(shared).run(count(14), { cachePrefix: false });
  expect(shared.pages.size).toBe(0);
  await createNode(shared).run(count(14));
  const node = createNode(shared);
  await node.run(count(14, 50)); // opens the namespace
  const numPages = shared.pages.size;
  expect(await node.run(count(14), { cachePrefix: false })).toBe(0);
  expect([node.stats().numHits, shared.pages.size]).toEqual([0, numPages]);
});

test('[SH10] a page that is evicted is written, and pages continue those in memory and on the own disk', async () => {
  const shared = createMemoryShared();
  const spill = createMemorySpill();
  const long = count(30);
  await createNode(shared).run(long);
  // This node has the first page in memory, the second on its disk.
  const node = createNode(shared, { spill: spill.open(), numPages: 10 });
  shared.isAway = true;
  await node.run(long.slice(0, 9));
  node.cache.clear();
  await node.run(long.slice(0, 5));
  expect(node.cache.stats().numCachedPages).toBe(2);
  shared.isAway = false;
  expect(await node.run(long)).toBe(28);
  expect(node.stats().numHits).toBe(5);

  const evicting = createNode(shared, { numPages: 8 });
  shared.pages.clear();
  evicting.cache.openSequence(OWNER);
  shared.isAway = true;
  await evicting.run(count(20, 50));
  shared.isAway = false;
  evicting.cache.clear();
  await shared.settled();
  expect(await createNode(shared).run(count(20, 50))).toBe(16);
});

test('[SH11] the end of the process stores every idle page that is not stored', async () => {
  const shared = createMemoryShared();
  const node = createNode(shared);
  shared.isAway = true;
  await node.run(count(14));
  // Published, but its sequence did not end in order: in no queue.
  const pages = node.cache.openSequence(OWNER);
  pages.attach(count(10, 50), Infinity, 0);
  pages.publish(count(10, 50), 10);
  pages.discard();
  expect(shared.pages.size).toBe(0);
  shared.isAway = false;
  await node.cache.dispose();
  expect(shared.pages.size).toBe(3 + 2);
});

test('[SH12] a request waits no longer than computing takes, and uses what has arrived', async () => {
  const shared = createMemoryShared();
  const prompt = count(30);
  await createNode(shared).run(prompt);
  const node = createNode(shared);
  node.cache.onComputed(16, 40); // 10 ms for a page
  shared.holdsAfter = 3;
  const owner = OWNER;
  node.cache.openSequence(owner);
  const fetch = node.cache.fetchShared(owner, prompt)!;
  for (node.now.ms = 1; node.now.ms < 70; node.now.ms += 1) {
    await Promise.resolve();
    node.cache.fetches!.settle();
    expect(fetch.isDone).toBe(false);
  }
  node.now.ms = 70;
  node.cache.fetches!.settle();
  expect(fetch.isDone).toBe(true);
  expect(node.stats()).toMatchObject({ numLate: 1, numHits: 3 });
  shared.holdsAfter = Infinity;
  expect(node.cache.cachedTokens(owner, prompt)).toBe(12);
});

test('[SH13] storage that was slower than computing is not asked, until it is tried again', async () => {
  const shared = createMemoryShared();
  await createNode(shared).run(count(14));
  await createNode(shared).run(count(14, 20));
  await createNode(shared).run(count(14, 40));
  const node = createNode(shared);
  node.cache.onComputed(16, 4); // 1 ms for a page
  shared.onRead = () => (node.now.ms += 100);
  expect(await node.run(count(14))).toBeGreaterThan(0); // not measured yet: some arrive in time
  expect(node.stats().firstMs).toBeGreaterThanOrEqual(100);
  expect(await node.run(count(14, 20))).toBe(0);
  expect(node.stats().numSkipped).toBe(1);
  node.now.ms += 30_000;
  expect(await node.run(count(14, 40))).toBeGreaterThan(0);
  // Steps of running answers say nothing about prompts.
  const before = node.stats().computeMs;
  node.cache.onComputed(3, 1000);
  expect(node.stats().computeMs).toBe(before);
  node.cache.onComputed(4, 1000);
  expect(node.stats().computeMs).toBeGreaterThan(before!);
});

test('[SH14] requests with one prompt read it once, and the first one that is aborted ends nothing', async () => {
  const shared = createMemoryShared();
  await createNode(shared).run(count(14));
  const node = createNode(shared);
  node.cache.openSequence(OWNER);
  const [first, second] = [node.cache.fetchShared(OWNER, count(14))!, node.cache.fetchShared(OWNER, count(14))!];
  first.cancel();
  first.cancel();
  expect([first.isDone, node.cache.fetches!.size]).toEqual([false, 1]);
  await untilDone(node.cache, second);
  expect(node.stats().numHits).toBe(3);
  node.cache.clear();
  const alone = node.cache.fetchShared(OWNER, count(14))!;
  alone.cancel();
  expect([alone.isDone, node.cache.fetches!.size]).toEqual([true, 0]);
});

test('[SH15] memory that is short ends the search; pages of another size are not used', async () => {
  const shared = createMemoryShared();
  await createNode(shared).run(count(30));
  const small = createNode(shared, { numPages: 5 });
  const owner = { ...OWNER, tenant: 'other' };
  const running = small.cache.openSequence(owner);
  running.attach(count(12, 60), Infinity, 0);
  small.cache.openSequence(OWNER);
  const fetch = small.cache.fetchShared(OWNER, count(30))!;
  await untilDone(small.cache, fetch);
  small.cache.checkIntegrity([running]);
  for (const one of shared.pages.values()) one.bytes = one.bytes.slice(1);
  expect(await createNode(shared).run(count(30))).toBe(0);
});

test('[SH16] erasing a tenant drops its queued pages', async () => {
  const shared = createMemoryShared();
  const node = createNode(shared);
  const pages = node.cache.openSequence(OWNER);
  pages.attach(count(14), Infinity, 0);
  pages.release(count(14), 14);
  pages.end();
  expect(node.cache.hasBackgroundWork).toBe(true);
  node.cache.eraseTenant('a', { keepsKey: false });
  expect(node.cache.hasBackgroundWork).toBe(false);
  await node.cache.dispose();
  expect(shared.pages.size).toBe(0);
});
