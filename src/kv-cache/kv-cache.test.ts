import { expect, test } from 'vitest';
import { createMemorySpill } from '../../test/support/memory-spill.ts';
import { createToyPages } from '../../test/support/toy-pages.ts';
import { createKvCache, type KvCache, type KvCacheOptions, type SequenceOwner } from './kv-cache.ts';
import type { SequencePages } from './sequence-pages.ts';

const PAGE_TOKENS = 4;
const OWNER: SequenceOwner = { tenant: 'a', adapterHash: null, cachePrefix: true, retention: 'ordinary' };

interface SetUp {
  cache: KvCache;
  /** Computes the uncached tokens; returns the pages, still held, and the number of cached tokens. */
  compute(tokens: number[], owner?: Partial<SequenceOwner>): { pages: SequencePages; numFound: number };
  /** Computes and releases. Returns the number of cached tokens. */
  run(tokens: number[], owner?: Partial<SequenceOwner>): number;
  read(pages: SequencePages, numTokens: number): number[];
}

function setUp(options: Partial<KvCacheOptions> & { numPages?: number; packed?: boolean } = {}): SetUp {
  const { numPages = 16, packed = false, ...cacheOptions } = options;
  const toy = createToyPages(numPages, PAGE_TOKENS, packed);
  const cache = createKvCache({
    memory: toy.store,
    numPages,
    maxBatchTokens: 64,
    modelHash: 'model',
    policy: 'f16',
    ...cacheOptions,
  });
  const compute: SetUp['compute'] = (tokens, owner) => {
    const pages = cache.openSequence({ ...OWNER, ...owner });
    const numFound = pages.attach(tokens, Infinity, 0)!;
    for (let i = numFound; i < tokens.length; i++) toy.write(pages.slotOf(i), tokens[i]!, i, pages.table());
    expect(toy.readBack(pages.table(), tokens.length)).toEqual(tokens);
    return { pages, numFound };
  };
  return {
    cache,
    compute,
    run(tokens, owner) {
      const { pages, numFound } = compute(tokens, owner);
      pages.release(tokens, tokens.length);
      pages.end();
      cache.checkIntegrity([]);
      return numFound;
    },
    read: (pages, numTokens) => toy.readBack(pages.table(), numTokens),
  };
}

const count = (length: number, first = 0): number[] => Array.from({ length }, (_, i) => first + i);

const STRANGERS: [string, Partial<SequenceOwner>][] = [
  ['tenant', { tenant: 'b' }],
  ['adapter', { adapterHash: 'a' }],
];

for (const [what, stranger] of STRANGERS) {
  test(`[KC1] another ${what} with the same prompt shares no page, in memory or on disk; the same one does`, () => {
    const spill = createMemorySpill();
    const { cache, compute, run } = setUp({ spill: spill.open() });
    const prompt = count(14);
    const first = compute(prompt);
    first.pages.publish(prompt, prompt.length);
    const same = compute(prompt);
    const other = compute(prompt, stranger);
    expect([same.numFound, other.numFound]).toEqual([12, 0]);
    expect(same.pages.pages.slice(0, 3)).toEqual(first.pages.pages.slice(0, 3));
    const held = new Set([...first.pages.pages, ...same.pages.pages]);
    expect(other.pages.pages.filter((page) => held.has(page))).toEqual([]);
    for (const { pages } of [first, same, other]) pages.release(prompt, prompt.length);
    cache.clear(); // spills everything
    cache.checkIntegrity([]);
    const keys = [...spill.pages.keys()];
    const roots = new Set(keys.map((key) => key.split('/')[0]));
    expect([keys.length, roots.size]).toEqual([6, 2]);

    // And after a restart.
    spill.pages.forEach((_, key) => void (key.startsWith([...roots][1]!) && spill.pages.delete(key)));
    const again = setUp({ spill: spill.open() });
    expect(again.run(prompt, stranger)).toBe(0);
    expect(again.run(prompt)).toBe(12);
    expect(run(prompt, stranger)).toBe(0);
  });
}

test('[KC1] restores spilled pages only for the same model and page policy', () => {
  const spill = createMemorySpill();
  const before = setUp({ spill: spill.open() });
  before.run(count(14));
  before.cache.dispose();
  expect(setUp({ spill: spill.open(), modelHash: 'other' }).run(count(14))).toBe(0);
  expect(setUp({ spill: spill.open(), policy: 'q8' }).run(count(14))).toBe(0);
  expect(setUp({ spill: spill.open() }).run(count(14))).toBe(12);
});

test('[KC2] without cachePrefix, reads and leaves nothing in memory or on disk', () => {
  const spill = createMemorySpill();
  const { cache, compute, run } = setUp({ spill: spill.open() });
  expect(run(count(14))).toBe(0);
  expect(run(count(14), { cachePrefix: false })).toBe(0);
  expect(run(count(14, 30), { cachePrefix: false })).toBe(0);
  expect(run(count(14, 30))).toBe(0);
  expect(cache.stats()).toMatchObject({ numLookups: 2, numCachedPages: 8 });

  // It finds its own pages after a preemption, until it ends.
  const { pages } = compute(count(9, 40), { cachePrefix: false });
  pages.release(count(9, 40), 9);
  expect(cache.stats().numCachedPages).toBe(11);
  expect(pages.attach(count(10, 40), Infinity, 0)).toBe(9);
  pages.discard();
  pages.end();
  expect(cache.stats().numCachedPages).toBe(8);
  cache.dispose();
  expect(
    [...spill.pages.keys()].filter((key) => /\/(3[0-9]|4[0-9])/.test(key.split('/').slice(0, 2).join('/'))),
  ).toHaveLength(3);
  expect(spill.pages.size).toBe(6);
});

test('[KC3] a prompt that diverges inside a page continues in a copy', () => {
  const { cache, compute, read } = setUp();
  const first = count(11);
  const a = compute(first);
  a.pages.release(first, first.length);
  const fork = [...count(9), 50, 51, 52];
  const b = compute(fork);
  expect([b.numFound, cache.stats().numCopied]).toEqual([9, 1]);
  const c = compute([...first, 12]);
  expect(c.numFound).toBe(11);
  expect(read(b.pages, fork.length)).toEqual(fork);
  expect(read(c.pages, 12)).toEqual([...first, 12]);
  expect(new Set([...b.pages.pages, ...c.pages.pages]).size).toBe(2 + 2 + 2); // 13 tokens: 4 pages each, the first 2 shared
  cache.checkIntegrity([b.pages, c.pages]);
});

test('[KC4] publishes only whole pages while a sequence runs, and merges equal ones', () => {
  const { cache, compute } = setUp();
  const tokens = count(14);
  const a = compute(tokens);
  const b = compute(tokens);
  a.pages.publish(tokens, 7);
  expect(cache.stats().numCachedPages).toBe(1);
  a.pages.publish(tokens, 14);
  expect(cache.stats().numCachedPages).toBe(3);
  b.pages.publish(tokens, 14);
  expect(b.pages.pages.slice(0, 3)).toEqual(a.pages.pages.slice(0, 3));
  expect(b.pages.pages[3]).not.toBe(a.pages.pages[3]);
  expect(cache.stats()).toMatchObject({ numCachedPages: 3, tail: { numPages: 5 } });
  cache.checkIntegrity([a.pages, b.pages]);
});

test('[KC5] restores a page only if it is intact, of the right size and without a gap before it', () => {
  const spill = createMemorySpill();
  const before = setUp({ spill: spill.open() });
  before.run(count(22));
  before.cache.dispose();
  const keys = [...spill.pages.keys()];
  expect(keys).toHaveLength(5);
  spill.pages.get(keys[3]!)!.isCorrupt = true;
  const after = setUp({ spill: spill.open() });
  expect(after.run(count(22))).toBe(12);
  expect(after.cache.stats()).toMatchObject({ numRestored: 3, spill: { numCorrupt: 1 } });
  after.cache.dispose(); // recomputed and written again
  expect(setUp({ spill: spill.open() }).run(count(22))).toBe(20);

  const page = spill.pages.get(keys[1]!)!;
  for (const bytes of [page.bytes.slice(1), new Uint8Array(page.bytes.length + 8)]) {
    spill.pages.set(keys[1]!, { ...page, bytes });
    expect(setUp({ spill: spill.open() }).run(count(22))).toBe(4);
  }
  spill.pages.set(keys[1]!, { ...page, tier: 'packed' });
  expect(setUp({ spill: spill.open() }).run(count(22))).toBe(4);
});

test('[KC6] reports a full disk and changes nothing else', () => {
  const spill = createMemorySpill();
  spill.refusesWrites = true;
  const { cache, run } = setUp({ numPages: 8, spill: spill.open() });
  for (let i = 0; i < 6; i++) expect(run(count(14, 10 * i))).toBe(0);
  cache.dispose();
  expect(cache.stats().spill).toMatchObject({ numPages: 0, lastFailure: 'no space left on device' });
  expect(cache.stats().spill!.numFailedWrites).toBeGreaterThan(6);
});

test('[KC7] above the high mark evicts idle prefixes, then packs pages, then evicts sessions', async () => {
  const { cache, run } = setUp({ numPages: 80, packed: true });
  run(count(100), { retention: 'ordinary' });
  run(count(100, 1), { retention: 'session' });
  await cache.maintain([]);
  expect(cache.stats()).toMatchObject({ numEvictions: 0, numPacked: 0 }); // 63 %
  run(count(100, 2), { retention: 'session' });
  await cache.maintain([]);
  const { numEvictions, numPacked, usedBytes, budgetBytes } = cache.stats();
  expect(numEvictions).toBeGreaterThan(0);
  expect([numPacked, usedBytes <= 0.8 * budgetBytes]).toEqual([0, true]);
  run(count(92, 3), { retention: 'session' }); // 73 pages of sessions
  await cache.maintain([]);
  expect(cache.stats().numEvictions).toBe(25);
  expect(cache.stats().numPacked).toBeGreaterThan(0);
  // The sessions are still cached.
  for (const first of [1, 2, 3]) expect(run([...count(92, first), 255], { retention: 'session' })).toBe(92);
  cache.checkIntegrity([]);
});

test('[KC8] never packs pages in the tail of any running sequence', async () => {
  const { cache, compute, read } = setUp({ numPages: 64, packed: true, tailTokens: 32 });
  const tokens = count(128);
  const a = compute(tokens);
  a.pages.publish(tokens, 128);
  const b = compute(tokens.slice(0, 70));
  const tiers = (): string => a.pages.pages.map(({ tier }) => tier[0]).join('');
  const running = [
    { pages: a.pages, numComputed: 95 },
    { pages: b.pages, numComputed: 70 },
  ];
  await cache.maintain(running);
  expect(tiers()).not.toContain('p'); // 95 - 32 is less than a group of 64
  running[0]!.numComputed = 128;
  await cache.maintain(running);
  expect(tiers()).not.toContain('p'); // outside its own tail, but in the other's
  b.pages.release(tokens.slice(0, 70), 70);
  await cache.maintain(running.slice(0, 1));
  expect(tiers()).toBe('p'.repeat(16) + 'f'.repeat(17));
  expect(read(a.pages, 128)).toEqual(tokens);
  // Packed pages are not copied: a prompt that diverges inside one computes the whole page.
  const c = compute([...count(30), 200, 201]);
  expect([c.numFound, cache.stats().numCopied]).toEqual([28, 1]); // the one copy was b's
  expect(cache.stats()).toMatchObject({ packed: { numPages: 16, numTokens: 64, sizeBytes: 16 * 12 } });
});

test('[KC9] a sequence running alone always fits, even if its cached prefix takes too much', () => {
  const spill = createMemorySpill();
  const wide = setUp({ numPages: 80, packed: true, spill: spill.open(), maxBatchTokens: 8, tailTokens: 0 });
  wide.run(count(180)); // spills 45 float pages
  wide.cache.dispose();
  const narrow = setUp({ numPages: 40, packed: true, spill: spill.open(), maxBatchTokens: 8, tailTokens: 0 });
  expect(narrow.cache.maxTokens).toBeGreaterThan(180);
  const pages = narrow.cache.openSequence(OWNER);
  const numFound = pages.attach(count(181), 8, 0)!;
  expect(numFound).toBeGreaterThan(80);
  expect(pages.capacityTokens).toBeGreaterThanOrEqual(numFound + 8);
  expect(narrow.read(pages, numFound)).toEqual(count(numFound));
  narrow.cache.checkIntegrity([pages]);
});

test('[KC10] with others running, takes all pages it needs or none', () => {
  const { cache, compute } = setUp({ numPages: 8 });
  const { pages } = compute(count(20));
  const other = cache.openSequence(OWNER);
  expect(other.attach(count(8, 50), Infinity, 1)).toBe(null); // needs 3 pages and a spare, 2 are free
  expect(other.pages).toEqual([]);
  expect(other.attach(count(3, 50), Infinity, 1)).toBe(0);
  cache.checkIntegrity([pages, other]);
});

test('[KC13] does not pack where that would leave less than the requested context', () => {
  const roomOf = (minTokens?: number): { maxTokens: number; maxNewTokens: number } => {
    const { cache } = setUp({
      numPages: 8,
      packed: true,
      tailTokens: 8,
      ...(minTokens === undefined ? {} : { minTokens }),
    });
    return { maxTokens: cache.maxTokens, maxNewTokens: cache.maxNewTokens };
  };
  const { maxTokens, maxNewTokens } = roomOf();
  expect(maxTokens).toBeLessThan(8 * PAGE_TOKENS);
  expect(maxNewTokens).toBe(64);
  expect(roomOf(maxTokens)).toEqual({ maxTokens, maxNewTokens });
  expect(roomOf(maxTokens + 1)).toEqual({ maxTokens: 8 * PAGE_TOKENS, maxNewTokens: Infinity });
  expect(roomOf(1000)).toEqual({ maxTokens: 8 * PAGE_TOKENS, maxNewTokens: Infinity });
});

test('[KC7] a sequence can end while its idle pages are being packed', async () => {
  const { cache, compute } = setUp({ numPages: 400, packed: true });
  const held = compute(Array.from({ length: 1299 }, () => 7)); // 325 pages, 81 %: so packing would go on
  const tokens = Array.from({ length: 160 }, (_, i) => i % 61);
  const { pages } = compute(tokens, { cachePrefix: false, retention: 'session' });
  pages.release(tokens, tokens.length); // preempted
  const maintenance = cache.maintain([]);
  for (let i = 0; i < 10; i++) await Promise.resolve(); // packing has started
  pages.end();
  await maintenance;
  cache.checkIntegrity([held.pages]);
  expect(cache.stats()).toMatchObject({ numPacked: 16, numCachedPages: 0, packed: { numPages: 0 } });
});

test('[KC5] the same tokens after a different prefix are a different page', () => {
  const spill = createMemorySpill();
  const { cache, run } = setUp({ spill: spill.open() });
  const [first, second, third] = [count(4), count(4, 10), count(4, 20)];
  run([...first, ...third, 1]);
  run([...second, ...third, 1]);
  cache.dispose();
  expect(spill.pages.size).toBe(4);
  const again = setUp({ spill: spill.open() });
  expect(again.run([...second, ...third, 2])).toBe(8);
  expect(again.run([...second, ...first, 2])).toBe(4);
});

test('[KC14] evicts nothing if even all idle pages are too few', () => {
  const { cache, compute, run } = setUp({ numPages: 16 });
  run(count(16, 100)); // 4 idle pages
  const { pages } = compute(count(36)); // 9 pages and one to continue
  const other = cache.openSequence(OWNER);
  const before = cache.stats();
  expect(before.numIdlePages).toBe(4);
  expect(other.attach(count(80, 150), Infinity, 1)).toBe(null);
  expect(cache.stats()).toEqual(before);
  expect(other.attach(count(18, 150), Infinity, 1)).toBe(0);
  expect(cache.stats().numEvictions).toBeGreaterThan(0);
  cache.checkIntegrity([pages, other]);
});

test('[KC15] spreads writes before an eviction over several steps', async () => {
  const spill = createMemorySpill();
  const { cache, run } = setUp({ numPages: 400, spill: spill.open() });
  for (let i = 0; i < 46; i++) run([i, ...count(31, i)]); // 8 pages each: 92 %
  const writes: number[] = [];
  for (let step = 0; step < 20; step++) {
    const before = cache.stats();
    await cache.maintain([]);
    writes.push(cache.stats().spill!.numWrites - before.spill!.numWrites);
    cache.checkIntegrity([]);
  }
  expect(Math.max(...writes)).toBe(16);
  expect(writes.filter((num) => num > 1).length).toBeGreaterThan(1);
  const { usedBytes, budgetBytes } = cache.stats();
  expect(usedBytes / budgetBytes).toBeGreaterThan(0.7);
  expect(usedBytes / budgetBytes).toBeLessThanOrEqual(0.8);
});

test('[KC16] retries after a lack of memory only when pages were freed or more is cached', () => {
  const spill = createMemorySpill();
  const { cache, compute, run } = setUp({ numPages: 8, spill: spill.open() });
  const prompt = count(17);
  run(prompt);
  cache.clear(); // spills them
  const others = [compute(count(8, 50)), compute(count(12, 80))]; // with one more token: 3 and 4 pages
  const waiting = cache.openSequence(OWNER);
  expect(waiting.attach(prompt, Infinity, 2)).toBeNull();
  const { numEvictions, spill: after } = cache.stats();
  for (let step = 0; step < 50; step++) expect(waiting.attach(prompt, Infinity, 2)).toBeNull();
  expect(cache.stats()).toMatchObject({ numEvictions, spill: { numReads: after!.numReads } });
  others[1]!.pages.release(count(12, 80), 12);
  expect(waiting.attach(prompt, Infinity, 1)).toBeNull(); // needs 5 pages and a spare, 8 - 3 are free
  others[0]!.pages.release(count(8, 50), 8);
  expect(waiting.attach(prompt, Infinity, 1)).toBe(16);
  waiting.release(prompt, 16);
  cache.checkIntegrity([]);
});

test('[KC16] retries when another sequence has computed shared pages', () => {
  const { cache, compute } = setUp({ numPages: 8 });
  const prompt = count(13);
  const other = compute([...count(12), 40, 41, 42, 43, 44]); // 5 pages, 3 of them shared
  const waiting = cache.openSequence(OWNER);
  expect(waiting.attach(prompt, Infinity, 1)).toBeNull();
  other.pages.publish([...count(12), 40, 41, 42, 43, 44], 17);
  expect(waiting.attach(prompt, Infinity, 1)).toBe(12);
  cache.checkIntegrity([other.pages, waiting]);
});

test('[KC17] keeps only the latest tenants open, and a returning tenant finds its pages', () => {
  const spill = createMemorySpill();
  const store = spill.open();
  let numOpened = 0;
  const { cache, run } = setUp({
    spill: { ...store, open: (namespace) => (numOpened++, store.open(namespace)) },
  });
  const prompt = count(9);
  run(prompt, { tenant: 'first' });
  run(prompt, { tenant: 'first' });
  expect(numOpened).toBe(1);
  for (let i = 0; i < 1024; i++) run(prompt, { tenant: `${i}` });
  cache.clear();
  expect(run(prompt, { tenant: 'first' })).toBe(8);
  expect(numOpened).toBe(1026);
});

test("[KC18] a tenant's flood does not evict the prefixes of another, ordinary, in sessions or uncached", () => {
  const { run, cache } = setUp({ numPages: 32 });
  const prompt = count(24); // 6 pages
  run([...prompt, 90, 91], { tenant: 'victim' });
  for (let i = 0; i < 60; i++) {
    run([i, ...count(39, 100)], {
      tenant: 'flood',
      retention: i % 3 === 0 ? 'session' : 'ordinary',
      cachePrefix: i % 5 > 0,
    });
  }
  expect(cache.stats().numEvictions).toBeGreaterThan(100);
  expect(run([...prompt, 92, 93], { tenant: 'victim' })).toBe(24);
});

test('[KC18] a tenant keeps no more than its share of the cache', () => {
  const { run, cache } = setUp({ numPages: 32 });
  for (let i = 0; i < 3; i++) run([i, ...count(31)], { tenant: 'first' }); // 24 of 32 pages
  for (let i = 0; i < 20; i++) run([i, ...count(39, 100)], { tenant: 'second' });
  const cachedTokens = (i: number): number =>
    cache.cachedTokens({ tenant: 'first', adapterHash: null }, [i, ...count(31), 1]);
  // A quarter of the 28 to 31 cached pages.
  expect([0, 1, 2].map(cachedTokens)).toEqual([0, 0, 7 * PAGE_TOKENS]);
});

test('[KC9][KC18] a sequence that runs alone takes the floors of others if it needs all pages', () => {
  const { run } = setUp({ numPages: 16 });
  run(count(24), { tenant: 'victim' });
  expect(run(count(63), { tenant: 'other' })).toBe(0);
});
