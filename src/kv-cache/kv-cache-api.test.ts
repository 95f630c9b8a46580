import { expect, test } from 'vitest';
import { createMemoryShared } from '../../test/support/memory-shared.ts';
import { createMemorySpill } from '../../test/support/memory-spill.ts';
import { createToyPages } from '../../test/support/toy-pages.ts';
import { createKvCache, type KvCacheOptions, type SequenceOwner } from './kv-cache.ts';
import type { SequencePages } from './sequence-pages.ts';

const PAGE_TOKENS = 4;
const PAGE_BYTES = 32;
const OWNER: SequenceOwner = { tenant: 'a', adapterHash: null, cachePrefix: true, retention: 'ordinary' };
const count = (length: number, first = 0): number[] => Array.from({ length }, (_, i) => first + i);

function setUp({ numPages = 16, packed = false, ...options }: Partial<KvCacheOptions> & { packed?: boolean } = {}) {
  const toy = createToyPages(numPages, PAGE_TOKENS, packed);
  const cache = createKvCache({
    memory: toy.store,
    numPages,
    maxBatchTokens: 64,
    modelHash: 'model',
    policy: 'f16',
    ...options,
  });
  function compute(tokens: number[], owner: Partial<SequenceOwner> = {}) {
    const pages = cache.openSequence({ ...OWNER, ...owner });
    const numFound = pages.attach(tokens, Infinity, 0)!;
    for (let i = numFound; i < tokens.length; i++) toy.write(pages.slotOf(i), tokens[i]!, i, pages.table());
    return { pages, numFound };
  }
  function run(tokens: number[], owner: Partial<SequenceOwner> = {}): number {
    const { pages, numFound } = compute(tokens, owner);
    pages.release(tokens, tokens.length);
    pages.end();
    cache.checkIntegrity([]);
    return numFound;
  }
  return { cache, toy, compute, run };
}

test('an empty cache has no packed pages, nothing to write and nothing that is shared', () => {
  const { cache } = setUp();
  expect([cache.packsPages, cache.keepsPrefixes, cache.maxNewTokens, cache.maxTokens]).toEqual([false, true, Infinity, 64]); // prettier-ignore
  expect([cache.hasBackgroundWork, cache.fetches, cache.slabBytes]).toEqual([false, null, PAGE_BYTES]);
  expect(cache.stats()).toMatchObject({
    budgetBytes: 512,
    usedBytes: 0,
    compressionRatio: 1,
    numCachedPages: 0,
    sessionBytes: 0,
    adapterBytes: 0,
    evictionOrder: 'recency',
    states: null,
    spill: null,
    shared: null,
  });
  expect(cache.fetchShared(OWNER, count(9))).toBeNull();
  expect(cache.takeBlockEvents()).toEqual([]);
  expect(cache.promptBlocks(OWNER, count(9))).toBeNull();
  expect(setUp({ packed: true, numPages: 80 }).cache.packsPages).toBe(true);
  expect(setUp({ maxContext: 40 }).cache.maxTokens).toBe(40);
});

test('an adapter gets what a sequence of full length leaves, and only memory that is free', () => {
  const { cache, compute } = setUp({ maxContext: 40 }); // 10 of 16 pages
  expect([cache.canReserve(6 * PAGE_BYTES), cache.canReserve(6 * PAGE_BYTES + 1)]).toEqual([true, false]);
  expect(() => cache.reserve(6 * PAGE_BYTES + 1)).toThrow(
    expect.objectContaining({
      code: 'out_of_memory',
      isRetryable: false,
      message:
        '193 bytes for adapter weights do not fit: 0 bytes are reserved already, and the budget of 512 must also hold a sequence of 40 tokens',
      data: { neededBytes: 193, reservedBytes: 0, budgetBytes: 512, maxTokens: 40 },
    }),
  );
  const held = compute(count(43)); // 11 pages
  expect([cache.canReserve(5 * PAGE_BYTES), cache.canReserve(5 * PAGE_BYTES + 1)]).toEqual([true, false]);
  expect(() => cache.reserve(5 * PAGE_BYTES + 1)).toThrow(
    expect.objectContaining({
      code: 'out_of_memory',
      isRetryable: true,
      message: '161 bytes for adapter weights do not fit: 352 bytes of the budget of 512 are in use',
    }),
  );
  held.pages.release(count(43), 43);
  const reservation = cache.reserve(6 * PAGE_BYTES); // evicts idle pages
  expect(cache.stats()).toMatchObject({ adapterBytes: 6 * PAGE_BYTES, numEvictions: 1 });
  expect(cache.canReserve(1)).toBe(false);
  cache.unreserve(reservation);
  expect([cache.canReserve(6 * PAGE_BYTES), cache.stats().adapterBytes]).toEqual([true, 0]);
  cache.checkIntegrity([]);
});

test('a sequence that waits for memory is tried again when an adapter is gone', () => {
  const { cache, compute } = setUp({ maxContext: 24 });
  const reservation = cache.reserve(10 * PAGE_BYTES);
  const { pages } = compute(count(15));
  const waiting = cache.openSequence(OWNER);
  expect(waiting.attach(count(11, 50), Infinity, 1)).toBeNull(); // 3 pages and a spare one, 2 are free
  cache.unreserve(reservation);
  expect(waiting.attach(count(11, 50), Infinity, 1)).toBe(0);
  cache.checkIntegrity([pages, waiting]);
});

test("counts and erases one tenant's cached pages", () => {
  const spill = createMemorySpill();
  const { cache, run } = setUp({ spill: spill.open() });
  run(count(9));
  run(count(9), { adapterHash: 'x' });
  run(count(9), { tenant: 'b' });
  const counts = (): number[] => ['a', 'b', 'c'].map((tenant) => cache.countTenant(tenant));
  expect([counts(), cache.hasBackgroundWork]).toEqual([[2 + 4, 1 + 2, 0], true]);
  cache.workInBackground();
  expect([counts(), cache.hasBackgroundWork, spill.pages.size]).toEqual([[2 + 4, 1 + 2, 0], false, 6]);
  cache.eraseTenant('a', { keepsKey: false });
  expect([counts(), spill.pages.size]).toEqual([[0, 1 + 2, 0], 2]);
  expect([run(count(9), { tenant: 'b' }), run(count(9))]).toEqual([8, 0]);
  const plain = setUp();
  plain.run(count(9));
  expect([plain.cache.countTenant('a'), plain.cache.countTenant('b')]).toEqual([1, 0]);
});

test('without a prefix cache, nothing is kept, read or reported', async () => {
  const spill = createMemorySpill();
  const shared = createMemoryShared();
  const { cache, run } = setUp({
    keepsPrefixes: false,
    spill: spill.open(),
    shared: { store: shared.open(), timeoutMs: 1000, now: () => 0, onReady: () => {} },
    blockSalt: 'salt',
  });
  run(count(9));
  expect([run(count(9)), cache.keepsPrefixes, cache.hasBackgroundWork]).toEqual([0, false, false]);
  expect(cache.stats()).toMatchObject({ numLookups: 0, numCachedPages: 0 });
  expect(cache.fetchShared(OWNER, count(9))).toBeNull();
  expect(cache.promptBlocks(OWNER, count(9))).toBeNull();
  await cache.dispose();
  expect([spill.pages.size, shared.pages.size]).toEqual([0, 0]);
});

test('reports cached blocks by hashes, of shared prompts only', () => {
  const { cache, run } = setUp({ blockSalt: 'salt' });
  expect(cache.promptBlocks({ ...OWNER, cachePrefix: false }, count(9))).toBeNull();
  const blocks = cache.promptBlocks(OWNER, count(9))!;
  expect(blocks).toHaveLength(2);
  run(count(9));
  expect(cache.takeBlockEvents()).toEqual([{ type: 'stored', hashes: blocks, parent: null }]);
  expect(cache.takeBlockEvents()).toEqual([]);
  cache.clear();
  expect(cache.takeBlockEvents()).toMatchObject([{ type: 'removed' }]);
});

test('counts the bytes of sessions and of packed pages', async () => {
  const { cache, run, compute } = setUp({ numPages: 64, packed: true, tailTokens: 0 });
  run(count(8));
  expect(cache.stats()).toMatchObject({ sessionBytes: 0, compressionRatio: 1 });
  run(count(8, 50), { retention: 'session' });
  expect(cache.stats().sessionBytes).toBe(2 * PAGE_BYTES);
  const tokens = count(64, 100);
  const { pages } = compute(tokens, { retention: 'session' });
  pages.publish(tokens, 64);
  await cache.maintain([{ pages, numComputed: 64 }]);
  const { sessionBytes, compressionRatio, packed, tail, numPacked } = cache.stats();
  expect(numPacked).toBe(16);
  expect(sessionBytes).toBe(2 * PAGE_BYTES + 16 * 12);
  expect([packed.numPages, packed.sizeBytes, tail.numPages]).toEqual([16, 192, 5]);
  expect(compressionRatio).toBe((21 * PAGE_BYTES) / (5 * PAGE_BYTES + 192));
  const query = { tenant: null, maxDepth: 9, maxNodes: 9, numPreview: 0 };
  expect(cache.prefixes(query)).toMatchObject({ pageTokens: 4, floatPageBytes: 32, packedPageBytes: 12 });
  expect(setUp().cache.prefixes(query)).toMatchObject({ floatPageBytes: 32, packedPageBytes: 0 });
});

test('a prompt is a hit with all its whole pages, a partial hit with some tokens, a miss with none', () => {
  const { cache, run } = setUp();
  const counts = (): number[] => {
    const { numLookups, numHits, numPartialHits, numMisses, savedTokens } = cache.stats();
    return [numLookups, numHits, numPartialHits, numMisses, savedTokens];
  };
  expect([run(count(10)), counts()]).toEqual([0, [1, 0, 0, 1, 0]]);
  expect([run([...count(8), 50, 51]), counts()]).toEqual([8, [2, 1, 0, 1, 8]]); // 2 whole pages
  expect([run([...count(4), 60, 61, 62, 63, 64]), counts()]).toEqual([4, [3, 1, 1, 1, 12]]);
  expect([run([0, 1, 2]), counts()]).toEqual([2, [4, 2, 1, 1, 14]]); // all of a prompt shorter than a page
  expect([run([0, 1, 99, 98]), counts()]).toEqual([2, [5, 2, 2, 1, 16]]);
  expect([run([7]), counts()]).toEqual([0, [6, 2, 2, 2, 16]]);
});

test('a sequence that was preempted counts as one lookup, and one whose data is erased publishes nothing', () => {
  const { cache, compute } = setUp();
  const { pages } = compute(count(9));
  pages.release(count(9), 9);
  expect(pages.attach(count(10), Infinity, 0)).toBe(9);
  expect(cache.stats()).toMatchObject({ numLookups: 1, numCachedPages: 3 });
  pages.makePrivate();
  pages.makePrivate();
  cache.eraseTenant('a', { keepsKey: false });
  pages.publish(count(12), 12);
  expect([cache.stats().numCachedPages, cache.countTenant('a')]).toEqual([0, 0]);
  pages.release(count(10), 10);
  expect([cache.stats().numCachedPages, cache.countTenant('a')]).toEqual([3, 0]);
  pages.end();
  expect(cache.stats().numCachedPages).toBe(0);
  cache.checkIntegrity([]);
});

test('a token has a slot only within the pages and only in one that is not packed', () => {
  const { cache, compute } = setUp();
  const { pages } = compute(count(7));
  expect([pages.slotOf(0), pages.slotOf(5), pages.slotOf(7), pages.capacityTokens]).toEqual([0, 5, 7, 8]);
  expect(() => pages.slotOf(8)).toThrow('no page for token 8, 8 fit');
  expect(() => pages.slotOf(-1)).toThrow('no page for token -1, 8 fit');
  expect([pages.numMissingPages(8), pages.numMissingPages(9), pages.numMissingPages(1)]).toEqual([0, 1, 0]);
  expect([pages.tryGrowTo(64), pages.capacityTokens, pages.tryGrowTo(65)]).toEqual([true, 64, false]);
  expect([pages.stateFor(7, 1), pages.heldStates]).toEqual([null, []]);
  cache.checkIntegrity([pages]);
});

/** A model with recurrent layers: the state of the toy is the sum of its tokens. */
function setUpRecurrent(options: Partial<KvCacheOptions> = {}, numStates = 4) {
  const region = new Uint8Array(numStates * 2);
  const states = {
    numStates,
    stateBytes: 2,
    bytesOf: (index: number) => region.subarray(index * 2, index * 2 + 2),
  };
  const { cache, toy } = setUp({ states, ...options });
  const stateOf = (tokens: number[]): number[] => {
    const sum = tokens.reduce((total, token) => total + token, 0);
    return [sum & 0xff, tokens.length];
  };
  /** One step for the tokens from `start` on. */
  function step(pages: SequencePages, tokens: number[], start: number): void {
    const { index, copy } = pages.stateFor(start, tokens.length - start)!;
    expect([...states.bytesOf(index)].slice(0, start === 0 ? 0 : 2)).toEqual(
      start === 0 ? [] : stateOf(tokens.slice(0, start)),
    );
    for (let i = start; i < tokens.length; i++) toy.write(pages.slotOf(i), tokens[i]!, i, pages.table());
    states.bytesOf(index).set(stateOf(tokens));
    if (copy !== null) states.bytesOf(copy.index).set(stateOf(tokens.slice(0, start + copy.numRows)));
    cache.checkIntegrity([pages]);
    pages.publish(tokens, tokens.length);
  }
  function run(tokens: number[]): number {
    expect(toy.store.pageTokens).toBe(PAGE_TOKENS);
    const cached = cache.cachedTokens(OWNER, tokens);
    const pages = cache.openSequence(OWNER);
    const numFound = pages.attach(tokens, Infinity, 0)!;
    expect(numFound).toBeGreaterThanOrEqual(cached);
    step(pages, tokens, numFound);
    pages.release(tokens, tokens.length);
    pages.end();
    cache.checkIntegrity([]);
    return numFound;
  }
  return { cache, run, step };
}

test('with recurrent layers a prompt continues where a state was saved, and not between two of them', () => {
  const { cache, run } = setUpRecurrent();
  expect(run(count(10))).toBe(0);
  expect(cache.stats().states).toEqual({ numStates: 4, stateBytes: 2, numCheckpoints: 2 });
  expect(run(count(15))).toBe(10); // the state at the end of the first prompt
  expect(run([...count(9), 90, 91])).toBe(8); // the state at the last border
  expect(run([...count(6), 80, 81, 82])).toBe(0); // no state in the first page
  expect(cache.cachedTokens(OWNER, [...count(9), 70])).toBe(8);
  expect(cache.cachedTokens(OWNER, [...count(5), 70])).toBe(0);
});

test('a stored page brings its state back; pages behind the last state are computed again', () => {
  const spill = createMemorySpill();
  const before = setUpRecurrent({ spill: spill.open() });
  before.run(count(10));
  before.cache.clear();
  expect([...spill.pages.values()].map(({ bytes }) => bytes.length)).toEqual([PAGE_BYTES + 2, PAGE_BYTES]); // evicted from the end
  const after = setUpRecurrent({ spill: spill.open() });
  expect(after.run(count(12))).toBe(8);
  expect(after.cache.stats().numRestored).toBe(2);
  const key = [...spill.pages.keys()][0]!;
  spill.pages.set(key, { ...spill.pages.get(key)!, bytes: new Uint8Array(PAGE_BYTES) });
  expect(setUpRecurrent({ spill: spill.open() }).run(count(12))).toBe(0); // neither page has a state
});

test('a sequence with a state that waits for memory is tried again only with more cached tokens', () => {
  const { cache, step } = setUpRecurrent({ numPages: 8 });
  const first = cache.openSequence(OWNER);
  expect(first.attach([...count(13), 90, 91, 92, 93], Infinity, 0)).toBe(0); // 5 pages
  const waiting = cache.openSequence(OWNER);
  expect(waiting.attach(count(14), Infinity, 1)).toBeNull();
  expect([waiting.heldStates, waiting.pages]).toEqual([[], []]);
  step(first, count(13), 0);
  expect(cache.stats().states).toMatchObject({ numCheckpoints: 1 });
  expect(waiting.attach(count(14), Infinity, 1)).toBe(12);
  expect(waiting.heldStates).toHaveLength(1);
  cache.checkIntegrity([first, waiting]);
  waiting.discard();
  first.discard();
  cache.checkIntegrity([]);
});

test('[KC9] a sequence that was refused beside others is not refused when it runs alone', () => {
  const { cache, compute } = setUp({ numPages: 8 });
  const { pages } = compute(count(7)); // 2 pages
  const waiting = cache.openSequence(OWNER);
  expect(waiting.attach(count(24, 50), Infinity, 1)).toBeNull(); // 7 pages and a spare one, 6 are free
  expect(waiting.attach(count(24, 50), 8, 0)).toBe(0);
  cache.checkIntegrity([pages, waiting]);
});
