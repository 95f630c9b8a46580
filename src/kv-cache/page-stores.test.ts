import { expect, test } from 'vitest';
import { createMemorySpill } from '../../test/support/memory-spill.ts';
import { createToyPages } from '../../test/support/toy-pages.ts';
import { admitSpace } from './admit-space.ts';
import type { CacheNamespace } from './cache-namespace.ts';
import { namespaceId } from './cache-namespace.ts';
import { createImageKeys } from './image-keys.ts';
import { contentOf, maxContentBytes, placeContent } from './page-content.ts';
import { createPageNames } from './page-names.ts';
import { createSharedWrites } from './shared-writes.ts';
import type { SharedSpace } from './shared-store.ts';
import { createSpillQueue } from './spill-queue.ts';
import { createStateShelf } from './state-shelf.ts';
import type { KvPage, TreePlace } from './types.ts';

const PAGE_TOKENS = 4;
const NAMESPACE: CacheNamespace = { tenant: 'a', modelHash: 'm', adapterHash: null, policy: 'f16' };
const ID = namespaceId(NAMESPACE);
const count = (length: number, first = 0): number[] => Array.from({ length }, (_, i) => first + i);
const createPages = (length: number): (KvPage & { numRefs: number })[] =>
  Array.from({ length }, (_, index) => ({ tier: 'float', index, numRefs: 1 }));
const placeAt = (tokens: readonly number[], namespace = ID): TreePlace => ({
  namespace,
  tokens: Int32Array.from(tokens),
  numUses: 0,
  parent: () => null,
});

function openSpill() {
  const spill = createMemorySpill();
  const { store } = createToyPages(16, PAGE_TOKENS, false);
  const queue = createSpillQueue(spill.open(), store, createImageKeys());
  queue.admit(NAMESPACE);
  return { spill, queue, pages: createPages(8) };
}

test('a queue writes as many pages as asked, in order, and each one once', () => {
  const { spill, queue, pages } = openSpill();
  queue.enqueue(ID, count(18), pages.slice(0, 5));
  expect(queue.numWaiting).toBe(4); // the last page is not whole
  queue.writeSome(0);
  expect([queue.numWaiting, spill.pages.size]).toEqual([4, 0]);
  queue.writeSome(1);
  expect([queue.numWaiting, spill.pages.size]).toEqual([3, 1]);
  queue.writeSome(2);
  expect([queue.numWaiting, spill.pages.size]).toEqual([1, 3]);
  queue.writeSome(5);
  expect([queue.numWaiting, spill.pages.size]).toEqual([0, 4]);
  expect([...spill.pages.keys()].map((key) => key.split('/').at(-1))).toEqual(['0 1 2 3', '4 5 6 7', '8 9 10 11', '12 13 14 15']); // prettier-ignore
  queue.enqueue(ID, count(18), pages);
  expect(queue.numWaiting).toBe(0); // all are on disk
  queue.enqueue('unknown', count(18), pages);
  expect(queue.numWaiting).toBe(0);
});

test('a page that is gone, or written meanwhile, takes no turn of the queue', () => {
  const { spill, queue, pages } = openSpill();
  queue.enqueue(ID, count(16), pages);
  pages[0]!.numRefs = 0;
  expect(queue.writeEvicted(pages[1]!, { ...placeAt(count(4, 4)), parent: () => ({ page: pages[0]!, place: placeAt(count(4)) }) })).toBe(true); // prettier-ignore
  expect(spill.pages.size).toBe(1);
  queue.writeSome(1);
  expect([queue.numWaiting, spill.pages.size]).toEqual([1, 2]);
  queue.writeSome(1);
  expect([...spill.pages.keys()].map((key) => key.split('/').at(-1))).toEqual(['4 5 6 7', '8 9 10 11', '12 13 14 15']);
});

test('an evicted page is written once, if it is whole and its namespace is open', () => {
  const { spill, queue, pages } = openSpill();
  const [page] = pages;
  expect(queue.writeEvicted(page!, placeAt(count(3)))).toBe(false);
  expect(queue.writeEvicted(page!, placeAt(count(4), 'unknown'))).toBe(false);
  expect(queue.writeEvicted(page!, placeAt([-1, -1, -1, -1]))).toBe(false); // an image that is forgotten
  expect(spill.pages.size).toBe(0);
  expect(queue.writeEvicted(page!, placeAt(count(4)))).toBe(true);
  expect(queue.writeEvicted(page!, placeAt(count(4)))).toBe(false);
  expect(spill.pages.size).toBe(1);
  spill.refusesWrites = true;
  expect(queue.writeEvicted(pages[1]!, placeAt(count(4, 9)))).toBe(false);
});

test('at most 65536 pages wait', () => {
  const { queue, pages } = openSpill();
  const { writes, space } = openWrites();
  for (let i = 0; i < 65_535; i++) {
    queue.enqueue(ID, [0, 0, 0, i], pages);
    writes.enqueue(space, [0, 0, 0, i], pages);
  }
  queue.enqueue(ID, count(8, 1), pages);
  writes.enqueue(space, count(8, 1), pages);
  expect([queue.numWaiting, writes.numWaiting]).toEqual([65_536, 65_536]);
});

test('finds the stored pages that follow the known ones without a gap', () => {
  const { spill, queue, pages } = openSpill();
  queue.enqueue(ID, count(16), pages);
  queue.writeSome(Infinity);
  const found = (tokens: number[], numKnown: number): number => queue.find(ID, tokens, numKnown).length;
  expect([found(count(16), 0), found(count(16), 1), found(count(15), 1), found(count(16), 4)]).toEqual([4, 3, 2, 0]);
  expect(queue.find('unknown', count(16), 0)).toEqual([]);
  spill.pages.delete([...spill.pages.keys()][1]!);
  expect([found(count(16), 0), found(count(16), 1), found(count(16), 2)]).toEqual([1, 0, 2]);
});

test("counts and erases one tenant's pages, queued and stored", () => {
  const { spill, queue, pages } = openSpill();
  const other = { ...NAMESPACE, tenant: 'b' };
  queue.admit(other);
  queue.enqueue(ID, count(12), pages);
  queue.enqueue(namespaceId(other), count(8), pages);
  queue.writeSome(1);
  expect([queue.numPagesOf('a'), queue.numPagesOf('b'), queue.numPagesOf('c')]).toEqual([3, 2, 0]);
  queue.eraseTenant('a', { keepsKey: false });
  expect([queue.numPagesOf('a'), queue.numPagesOf('b'), queue.numWaiting, spill.pages.size]).toEqual([0, 2, 2, 0]);
  queue.writeSome(Infinity);
  expect(spill.pages.size).toBe(2);
  queue.enqueue(ID, count(12), pages); // erased: not before it is admitted again
  expect(queue.numWaiting).toBe(0);
});

test('keeps the spaces of the 1024 namespaces used last', () => {
  const spaces = new Map<string, number>();
  let numOpened = 0;
  const admit = (i: number): void => admitSpace(spaces, { open: () => numOpened++ }, { ...NAMESPACE, tenant: `${i}` });
  for (let i = 0; i < 1024; i++) admit(i);
  admit(0);
  expect([spaces.size, numOpened]).toEqual([1024, 1024]);
  admit(1024); // 1 leaves
  admit(0);
  expect([spaces.size, numOpened]).toEqual([1024, 1025]);
  admit(1);
  expect(numOpened).toBe(1026);
});

/** Writes that end when told. */
function openWrites(pageTokens = PAGE_TOKENS, pageBytes = 8) {
  const stored: string[] = [];
  const ends: (() => void)[] = [];
  let numReady = 0;
  const store = { canWrite: true };
  const known = new Set<string>();
  const space: SharedSpace = {
    rootKey: 'root',
    childKey: (parent, tokens) => `${parent}/${Array.from(tokens).join(' ')}`,
    isStored: (key) => known.has(key),
    write(key) {
      known.add(key);
      stored.push(key.split('/').at(-1)!);
      return new Promise((resolve) => ends.push(() => resolve(true)));
    },
    read: () => Promise.resolve(null),
  };
  // Only its length counts.
  const bytes = { length: pageBytes, slice: () => bytes } as unknown as Uint8Array;
  const toy = createToyPages(4, pageTokens, false).store;
  const memory = { ...toy, pageTokens, pageBytes, bytesOf: () => bytes };
  const names = createPageNames(createImageKeys(), pageTokens);
  const clock = { ms: 0 };
  const writes = createSharedWrites({
    store,
    sources: { memory, states: null },
    names,
    now: () => clock.ms,
    onReady: () => numReady++,
  });
  const settle = async (): Promise<void> => {
    for (const end of ends.splice(0)) end();
    for (let i = 0; i < 4; i++) await Promise.resolve();
  };
  return { writes, store, space, stored, known, clock, settle, ready: () => numReady };
}

test('at most 16 pages are on their way to a shared store, and an evicted one beyond that is dropped', async () => {
  const { writes, space, stored, settle, ready } = openWrites();
  const pages = createPages(20);
  const [evicted] = createPages(1);
  writes.enqueue(space, count(80), pages);
  expect([writes.numWaiting, writes.hasWork]).toEqual([20, true]);
  writes.work(0);
  expect(stored).toEqual([]);
  writes.work(1);
  expect([stored, writes.numWaiting]).toEqual([['0 1 2 3'], 20]);
  writes.work(Infinity);
  expect([stored.length, writes.numWaiting, writes.hasWork]).toEqual([16, 20, false]);
  writes.writeEvicted(space, evicted!, placeAt(count(4, 100)));
  expect([stored.length, writes.numDropped]).toEqual([16, 1]);
  await settle();
  expect([writes.numWaiting, writes.hasWork, ready()]).toEqual([4, true, 16]);
  const [unnamed] = createPages(1);
  writes.writeEvicted(space, unnamed!, placeAt(count(3, 100))); // not whole
  writes.writeEvicted(space, unnamed!, placeAt([-1, -1, -1, -1])); // cannot be named
  expect(stored.length).toBe(16);
  writes.work(Infinity);
  await settle();
  expect([stored.length, writes.numWaiting, writes.hasWork, writes.numDropped]).toEqual([20, 0, false, 1]);
  writes.enqueue(space, count(80), pages);
  expect(writes.numWaiting).toBe(0);
});

test('a page that is gone or stored takes no turn, and nothing is written while the store refuses', async () => {
  const { writes, space, store, stored, known, settle } = openWrites();
  const pages = createPages(5);
  writes.enqueue(space, count(16), pages);
  store.canWrite = false;
  expect(writes.hasWork).toBe(false);
  writes.work(Infinity);
  writes.writeEvicted(space, pages[4]!, placeAt(count(4, 50)));
  expect([stored, writes.numDropped]).toEqual([[], 0]);
  store.canWrite = true;
  pages[0]!.numRefs = 0;
  known.add('root/0 1 2 3/4 5 6 7');
  writes.work(1);
  expect([stored, writes.numWaiting]).toEqual([['8 9 10 11'], 2]);
  writes.writeEvicted(space, pages[2]!, placeAt(count(4, 8))); // on its way
  expect(stored.length).toBe(1);
  writes.forget(new Set());
  writes.forget(new Set([space]));
  await settle();
  expect([writes.numWaiting, writes.hasWork]).toEqual([0, false]);
});

test('64 MiB may be on their way, and one page of any size', async () => {
  for (const [mebibytes, numUnderWay] of [
    [65, 1],
    [64, 1],
    [32, 2],
    [31, 3],
  ] as const) {
    // prettier-ignore
    const { writes, space, stored, settle } = openWrites(PAGE_TOKENS, mebibytes * 2 ** 20);
    writes.enqueue(space, count(16), createPages(4));
    writes.work(Infinity);
    expect([mebibytes, stored.length]).toEqual([mebibytes, numUnderWay]);
    await settle();
    writes.work(1);
    expect(stored.length).toBe(numUnderWay + 1);
  }
});

test('the end of a process stores idle pages in time, and gives up when the time has passed', async () => {
  const { writes, space, stored, clock, settle } = openWrites();
  const pages = createPages(3);
  const idle = [
    { page: pages[0]!, place: placeAt(count(4)) },
    { page: pages[1]!, place: placeAt(count(4, 4), 'unknown') },
    { page: pages[2]!, place: placeAt(count(2, 8)) },
  ];
  const drained = writes.drain({ idlePages: () => idle }, (namespace) => (namespace === ID ? space : undefined));
  await settle();
  await drained;
  expect([stored, writes.numWaiting]).toEqual([['0 1 2 3'], 0]);
  clock.ms = 1000;
  writes.enqueue(space, count(4, 50), pages);
  let hasEnded = false;
  const late = writes.drain({ idlePages: () => [] }, () => undefined).then(() => (hasEnded = true));
  writes.enqueue(space, count(4, 60), pages);
  clock.ms = 21_000;
  await settle();
  await late;
  expect([hasEnded, stored]).toEqual([true, ['0 1 2 3', '50 51 52 53', '60 61 62 63']]);
});

test("the content of a page ends with the state after it, if that is the page's last token", () => {
  const { store } = createToyPages(4, PAGE_TOKENS, true);
  const region = new Uint8Array(6);
  const states = createStateShelf({ numStates: 3, stateBytes: 2, bytesOf: (i) => region.subarray(2 * i, 2 * i + 2) });
  const [page, other, third] = createPages(3);
  store.bytesOf('float', 0).fill(7);
  states.attach(page!, { index: states.take(), numTokens: 4 });
  states.attach(other!, { index: states.take(), numTokens: 3 });
  region.set([1, 2]);
  expect([...contentOf({ memory: store, states }, page!)]).toEqual([...Array<number>(32).fill(7), 1, 2]);
  expect(contentOf({ memory: store, states }, other!).length).toBe(32);
  expect(contentOf({ memory: store, states }, third!).length).toBe(32);
  expect(contentOf({ memory: store, states: null }, page!).length).toBe(32);
  expect(maxContentBytes({ memory: store, states })).toBe(34);
  expect(maxContentBytes({ memory: store, states: null })).toBe(32);
  expect(maxContentBytes({ memory: { ...store, pageBytes: 10 }, states })).toBe(14); // packed pages have 12 bytes
  expect(maxContentBytes({ memory: { ...store, packed: null }, states })).toBe(34);
});

test('stored content is placed with its state; content of another size is refused', () => {
  const { store } = createToyPages(4, PAGE_TOKENS, false);
  const region = new Uint8Array(4);
  const states = createStateShelf({ numStates: 2, stateBytes: 2, bytesOf: (i) => region.subarray(2 * i, 2 * i + 2) });
  let numAllocated = 0;
  let hasRoom = true;
  const pool = { allocate: () => [{ tier: 'float' as const, index: numAllocated++, numRefs: 1 }] };
  const space = { memory: store, pool, states, makeRoom: () => hasRoom };
  const bytes = Uint8Array.from([...Array<number>(32).fill(5), 8, 9]);
  const place = (content: Uint8Array, more = {}) => placeContent({ ...space, ...more }, { tier: 'float', bytes: content }); // prettier-ignore
  const page = place(bytes)!;
  expect([...store.bytesOf('float', 0)]).toEqual(Array<number>(32).fill(5));
  expect(states.find(page)).toEqual({ index: 0, numTokens: 4 });
  expect([...region]).toEqual([8, 9, 0, 0]);
  expect(states.find(place(bytes.subarray(0, 32))!)).toBeNull();
  expect([place(bytes.subarray(0, 33)), place(new Uint8Array(35)), place(bytes, { states: null })]).toEqual([null, null, null]); // prettier-ignore
  expect(placeContent(space, { tier: 'packed', bytes: new Uint8Array(12) })).toBeNull();
  hasRoom = false;
  expect(place(bytes)).toBeNull();
  expect(numAllocated).toBe(2);
});
