import { expect, test } from 'vitest';
import { createSlabLayout } from './slab-layout.ts';
import { chooseSlabPages } from './slab-size.ts';
import type { PagePoolOptions } from './types.ts';

const good: PagePoolOptions = {
  numPages: 10,
  pageBytes: 64,
  packed: { pageBytes: 36, unitBytes: 4 },
  slabPages: 4,
  copyPage: () => {},
};

const refused: [string, object, RegExp][] = [
  ['no pages', { numPages: 0 }, /"numPages" must be an integer from 1 to 67108864, got 0/],
  ['half a page', { numPages: 1.5 }, /"numPages" .* got 1.5/],
  ['endless pages', { numPages: 2 ** 26 + 1 }, /"numPages" .* got 67108865/],
  ['a page size of 0', { pageBytes: 0 }, /"pageBytes" .* got 0/],
  ['a missing page size', { pageBytes: undefined }, /"pageBytes" .* got null/],
  ['a region beyond 2^53 bytes', { pageBytes: 2 ** 52 }, /10 pages of 4503599627370496 bytes is too large/],
  ['empty slabs', { slabPages: 0 }, /"slabPages" must be an integer from 1 to 10, got 0/],
  ['slabs larger than the pool', { slabPages: 11 }, /"slabPages" must be an integer from 1 to 10, got 11/],
  ['a packed page size of 0', { packed: { pageBytes: 0, unitBytes: 4 } }, /"pageBytes" .* got 0/],
  ['no units', { packed: { pageBytes: 36, unitBytes: 0 } }, /"unitBytes" .* got 0/],
  ['packed pages larger than float pages', { packed: { pageBytes: 68, unitBytes: 4 } }, /of 68 bytes .* than 64 bytes/],
  [
    'pages that are not a multiple of the unit',
    { packed: { pageBytes: 36, unitBytes: 8 } },
    /64 bytes .* 36 bytes .* multiples of 8 bytes/,
  ],
  ['too many packed pages', { pageBytes: 2 ** 30, packed: { pageBytes: 4, unitBytes: 4 } }, /than 1048576 packed/],
  ['a missing copy function', { copyPage: null }, /"copyPage" must be a function/],
  ['an unknown option', { pages: 3 }, /unknown option "pages"/],
];

test.each(refused)('[UP11] %s: refused', (_, change, message) => {
  const create = () => createSlabLayout({ ...good, ...change } as PagePoolOptions);
  expect(create).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  expect(create).toThrow(message);
});

test('[UP3] locates pages of both tiers', () => {
  const { tiers, ...sizes } = createSlabLayout(good);
  expect(sizes).toEqual({ budgetBytes: 640, slabBytes: 256, numSlabs: 2, tailPages: 2 });
  expect([tiers.float.slabPages, tiers.packed.slabPages]).toEqual([4, 7]);
  expect([tiers.float.indexOf(2, 1), tiers.packed.indexOf(1, 6)]).toEqual([9, 118]);
  expect([tiers.packed.slabOf(118), tiers.packed.slotOf(118)]).toEqual([1, 6]);
  expect([tiers.float.slabOf(9), tiers.float.slotOf(9)]).toEqual([2, 1]);
});

test('[UP11] default slabs: single pages in a tiny pool, 2 MiB of small pages, little waste of packed ones', () => {
  expect([1, 3, 15, 31].map((numPages) => chooseSlabPages(numPages, 65536, null))).toEqual([1, 1, 1, 1]);
  expect(chooseSlabPages(100_000, 65536, null)).toBe(32);
  expect(chooseSlabPages(100_000, 4096, null)).toBe(512);
  expect(chooseSlabPages(100_000, 2 ** 20, null)).toBe(8);
  // 30 layers of 3 heads of 64 values: f16 with q8 and q4.
  const pageBytes = 30 * 3 * 4096;
  for (const [numPages, packedBytes, limit] of [
    [1000, 30 * 6624, 0.03],
    [1000, 30 * 4032, 0.03],
    [100, 30 * 6624, 0.1],
    [40, 30 * 6624, 0.16],
  ] as const) {
    const slabBytes = chooseSlabPages(numPages, pageBytes, packedBytes) * pageBytes;
    expect((slabBytes % packedBytes) / slabBytes).toBeLessThan(limit);
  }
});

test('[UP11] packed pages may be as large as float pages', () => {
  const { tiers } = createSlabLayout({ ...good, packed: { pageBytes: 64, unitBytes: 4 } });
  expect(tiers.packed.slabPages).toBe(tiers.float.slabPages);
});
