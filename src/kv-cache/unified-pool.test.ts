import { expect, test } from 'vitest';
import type { KvPage, PagePoolOptions } from './types.ts';
import { createUnifiedPool } from './unified-pool.ts';

const indexes = (pages: readonly KvPage[]): number[] => pages.map(({ index }) => index);
const internal = expect.objectContaining({ code: 'internal' });

/** Slabs of 4 float pages of 64 bytes or 7 packed pages of 36: two whole ones and a tail of 2 pages. */
function smallPool(options: Partial<PagePoolOptions> = {}) {
  const copies: string[] = [];
  const pool = createUnifiedPool({
    numPages: 10,
    pageBytes: 64,
    packed: { pageBytes: 36, unitBytes: 4 },
    slabPages: 4,
    copyPage: (tier, from, to) => copies.push(`${tier} ${from} -> ${to}`),
    ...options,
  });
  return { pool, copies };
}

test('[UP4] a fresh pool allocates float pages 0, 1, 2, … up to the last of the tail', () => {
  const { pool } = smallPool();
  expect(indexes(pool.allocate('float', 3))).toEqual([0, 1, 2]);
  const rest = pool.allocate('float', 7);
  expect(indexes(rest)).toEqual([3, 4, 5, 6, 7, 8, 9]);
  expect(rest[0]).toEqual({ tier: 'float', index: 3, numRefs: 1 });
  expect([pool.usedBytes, pool.budgetBytes, pool.numFreePages('float')]).toEqual([640, 640, 0]);
});

test('[UP4] fills the fullest slab first, starting with the slot freed last', () => {
  const { pool } = smallPool({ numPages: 12 });
  const pages = pool.allocate('float', 12);
  for (const i of [0, 5, 6, 8, 10, 11]) pool.release(pages[i]!);
  expect(indexes(pool.allocate('float', 6))).toEqual([0, 6, 5, 11, 10, 8]);
});

test('[UP3] places packed pages without gaps in a slab and never in the tail', () => {
  const { pool } = smallPool();
  expect([pool.numFreePages('float'), pool.numFreePages('packed')]).toEqual([10, 14]);
  const pages = pool.allocate('packed', 14);
  // 36 bytes are 9 units; the second slab starts at byte 256, unit 64.
  expect(indexes(pages)).toEqual([0, 9, 18, 27, 36, 45, 54, 64, 73, 82, 91, 100, 109, 118]);
  expect(pool.canAllocate('packed', 1)).toBe(false);
  expect(indexes(pool.allocate('float', 2))).toEqual([8, 9]);
  expect([pool.numPages('float'), pool.numPages('packed')]).toEqual([2, 14]);
});

test('[UP10] allocate and reserve without memory throw with the numbers and change nothing', () => {
  const { pool } = smallPool();
  const owner = pool.allocate('float', 5);
  expect(() => pool.allocate('packed', 8)).toThrow(
    expect.objectContaining({
      code: 'out_of_memory',
      message: '8 packed KV pages requested, 7 available; 384 of 640 bytes are used',
      data: { neededPages: 8, freePages: 7, usedBytes: 384, budgetBytes: 640 },
    }),
  );
  expect(() => pool.reserve(257)).toThrow(
    expect.objectContaining({
      code: 'out_of_memory',
      message: '257 bytes requested for an adapter, 256 available in slabs of 256; 384 of 640 bytes are used',
      data: { neededBytes: 257, freeBytes: 256, usedBytes: 384, budgetBytes: 640 },
    }),
  );
  pool.checkIntegrity([owner]);
  expect(indexes(pool.allocate('float', 5))).toEqual([5, 6, 7, 8, 9]);
  for (const count of [-1, 0.5, NaN, Infinity]) {
    expect(pool.canAllocate('float', count)).toBe(false);
    expect(() => pool.allocate('float', count)).toThrow(internal);
    expect(pool.canReserve(count)).toBe(false);
    expect(() => pool.reserve(count)).toThrow(internal);
  }
});

test('[UP5] empties the emptiest slab into holes of its tier when another tier needs it', () => {
  const { pool, copies } = smallPool({ numPages: 12 });
  const pages = pool.allocate('float', 12);
  for (const i of [1, 4, 6, 7, 10]) pool.release(pages[i]!);
  const live = [0, 2, 3, 5, 8, 9, 11].map((i) => pages[i]!);
  expect(pool.usedBytes).toBe(512);
  const packed = pool.allocate('packed', 1);
  expect(copies).toEqual(['float 5 -> 10']);
  expect(indexes(live)).toEqual([0, 2, 3, 10, 8, 9, 11]);
  expect(indexes(packed)).toEqual([64]);
  pool.checkIntegrity([live, packed]);
});

/** Each tier has two slabs with one page each; there is no other slab. */
function sparsePool() {
  const { pool, copies } = smallPool({ numPages: 16 });
  const float = pool.allocate('float', 8);
  const packed = pool.allocate('packed', 14);
  for (const page of [...float.slice(0, 3), ...float.slice(5), ...packed.slice(1, 13)]) pool.release(page);
  return { pool, copies, live: [float[3]!, float[4]!, packed[0]!, packed[13]!] };
}

test('[UP5] moves the fewest bytes if both tiers can free a slab', () => {
  const { pool, copies, live } = sparsePool();
  pool.reserve(1);
  expect(copies).toEqual(['packed 246 -> 182']);
  pool.reserve(1);
  expect(copies).toEqual(['packed 246 -> 182', 'float 4 -> 2']);
  expect(pool.canReserve(1)).toBe(false);
  pool.checkIntegrity([live]);
});

test('[UP5] a tier that needs a slab does not empty one of its own', () => {
  const { pool, copies, live } = sparsePool();
  const packed = pool.allocate('packed', pool.numFreePages('packed'));
  expect(packed.length).toBe(19);
  expect(copies).toEqual(['float 4 -> 2']);
  pool.checkIntegrity([live, packed]);
});

test('[UP5] moves a page into the tail for a reservation', () => {
  const { pool, copies } = smallPool();
  const pages = pool.allocate('float', 6);
  for (const i of [0, 1, 2, 3]) pool.release(pages[i]!);
  expect([pool.usedBytes, pool.peakBytes]).toEqual([128, 384]);
  expect(pool.reserve(512).slabs).toEqual([
    { offset: 256, sizeBytes: 256 }, // emptied last
    { offset: 0, sizeBytes: 256 },
  ]);
  expect(copies).toEqual(['float 4 -> 8', 'float 5 -> 9']);
  expect([pool.usedBytes, pool.peakBytes, pool.canAllocate('float', 1)]).toEqual([640, 640, false]);
});

test('[UP5] [UP7] never moves slots of an open ticket', () => {
  const { pool, copies } = smallPool({ numPages: 12 });
  const pages = pool.allocate('float', 5);
  for (const i of [1, 2, 3]) pool.release(pages[i]!);
  const live = [pages[0]!, pages[4]!];
  const tickets = live.map((page) => pool.beginPack([page])!);
  expect(tickets.map(({ moves }) => moves)).toEqual([[{ from: 0, to: 128 }], [{ from: 4, to: 137 }]]);
  expect([pool.usedBytes, pool.canReserve(1)]).toEqual([768, false]);
  pool.cancelPack(tickets[0]!);
  expect([pool.usedBytes, pool.canReserve(256)]).toEqual([512, true]);
  pool.reserve(256);
  expect(copies).toEqual(['float 0 -> 5']);
  pool.finishPack(tickets[1]!);
  expect(live).toEqual([
    { tier: 'float', index: 5, numRefs: 1 },
    { tier: 'packed', index: 137, numRefs: 1 },
  ]);
  pool.checkIntegrity([live]);
});

test('[UP5] a failed copy leaves the pool intact', () => {
  const copyPage = () => {
    throw new Error('no copy');
  };
  const { pool } = smallPool({ copyPage });
  const pages = pool.allocate('float', 6);
  for (const i of [0, 1, 2, 3]) pool.release(pages[i]!);
  expect(() => pool.reserve(512)).toThrow('no copy');
  pool.checkIntegrity([pages.slice(4)]);
  expect([pool.usedBytes, pool.reservedBytes()]).toEqual([128, 0]);
});

test('[UP7] a page released during packing lives as long as the ticket', () => {
  const { pool } = smallPool();
  const pages = pool.allocate('float', 3);
  const ticket = pool.beginPack(pages)!;
  expect(pages.map(({ numRefs }) => numRefs)).toEqual([2, 2, 2]);
  expect([pool.numPages('float'), pool.numPages('packed')]).toEqual([3, 0]);
  pool.release(pages[1]!);
  expect(() => pool.release(pages[1]!)).toThrow(internal);
  expect(() => pool.retain(pages[1]!)).toThrow(internal);
  pool.checkIntegrity([[pages[0]!, pages[2]!]]);
  pool.finishPack(ticket);
  expect(pages).toEqual([
    { tier: 'packed', index: 64, numRefs: 1 },
    { tier: 'packed', index: 73, numRefs: 0 },
    { tier: 'packed', index: 82, numRefs: 1 },
  ]);
  expect([pool.numPages('float'), pool.numPages('packed')]).toEqual([0, 2]);
  expect(indexes(pool.allocate('packed', 1))).toEqual([73]);
  for (const close of [pool.finishPack, pool.cancelPack]) expect(() => close(ticket)).toThrow(internal);
});

test('[UP7] packs only float pages in use, and none twice', () => {
  const { pool } = smallPool({ numPages: 8 });
  const [a, b, c] = pool.allocate('float', 3) as [KvPage, KvPage, KvPage];
  pool.release(c);
  for (const pages of [[a, a], [c], [b, c]]) expect(() => pool.beginPack(pages)).toThrow(internal);
  const ticket = pool.beginPack([a])!;
  expect(() => pool.beginPack([a])).toThrow(internal);
  pool.finishPack(ticket);
  expect(() => pool.beginPack([a])).toThrow(internal);
  const more = pool.allocate('float', 3);
  const packed = pool.allocate('packed', 6);
  expect(pool.beginPack([b])).toBeNull();
  pool.checkIntegrity([[a, b], more, packed]);
});

test('[UP7] packs nothing without a packed tier', () => {
  const { pool } = smallPool({ packed: null });
  const pages = pool.allocate('float', 1);
  expect([pool.numFreePages('packed'), pool.canAllocate('packed', 1), pool.beginPack(pages)]).toEqual([0, false, null]);
  pool.checkIntegrity([pages]);
});

test('[UP8] a page is free after its last release; its object stays invalid when the slot is reused', () => {
  const { pool } = smallPool();
  const [page] = pool.allocate('float', 1) as [KvPage];
  pool.retain(page);
  pool.release(page);
  expect([page.numRefs, pool.numPages('float')]).toEqual([1, 1]);
  pool.release(page);
  expect([page.numRefs, pool.numPages('float'), pool.usedBytes]).toEqual([0, 0, 0]);
  for (const use of [pool.release, pool.retain]) expect(() => use(page)).toThrow(internal);
  const again = pool.allocate('float', 1);
  expect(indexes(again)).toEqual([0]);
  for (const use of [pool.release, pool.retain]) expect(() => use(page)).toThrow(internal);
  for (const use of [pool.release, pool.retain]) expect(() => use({ ...again[0]! })).toThrow(internal);
  pool.checkIntegrity([again]);
});

test('[UP9] reservations have whole slabs, are counted and given back once', () => {
  const { pool } = smallPool({ numPages: 18 });
  const first = pool.reserve(257);
  const second = pool.reserve(1);
  expect(first).toEqual({
    sizeBytes: 257,
    slabs: [
      { offset: 0, sizeBytes: 256 },
      { offset: 256, sizeBytes: 256 },
    ],
  });
  expect([pool.reservedBytes(), pool.usedBytes]).toEqual([768, 768]);
  expect([pool.numFreePages('float'), pool.numFreePages('packed')]).toEqual([6, 7]);
  pool.unreserve(first);
  expect(() => pool.unreserve(first)).toThrow(internal);
  expect([pool.reservedBytes(), pool.usedBytes]).toEqual([256, 256]);
  expect(pool.reserve(0).slabs).toEqual([]);
  pool.unreserve(second);
  pool.checkIntegrity([]);
});

test('[UP12] 1,000 pools of 2^26 pages fit into memory, and the last page works', () => {
  const pools = Array.from({ length: 1000 }, () => smallPool({ numPages: 2 ** 26, slabPages: 32 }).pool);
  const last = pools.at(-1)!;
  last.reserve(2 ** 26 * 64 - 32 * 64);
  const pages = last.allocate('packed', 56);
  expect(indexes(pages).at(-1)).toBe((2 ** 26 - 32) * 16 + 55 * 9);
  expect(last.canAllocate('packed', 1)).toBe(false);
});

test('[UP13] detects leaked, unowned and misplaced pages', () => {
  const { pool } = smallPool();
  const pages = pool.allocate('float', 2);
  pool.checkIntegrity([pages]);
  expect(() => pool.checkIntegrity([])).toThrow(/references to float page 0: 1 recorded, 0 counted/);
  expect(() => pool.checkIntegrity([pages, pages])).toThrow(/references to float page 0: 1 recorded, 2 counted/);
  const stranger: KvPage = { tier: 'float', index: 3, numRefs: 1 };
  expect(() => pool.checkIntegrity([pages, [stranger]])).toThrow(/float page 3 has an owner .* but no slot/);
  const moved = pages[1] as { index: number };
  moved.index = 2;
  expect(() => pool.checkIntegrity([pages])).toThrow(/float slot 1 holds float page 2/);
});
