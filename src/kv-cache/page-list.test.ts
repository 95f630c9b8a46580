import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createPageList, numPagesFor } from './page-list.ts';
import { createPagePool } from './page-pool.ts';

test('pages needed', () => {
  expect([0, 1, 15, 16, 17, 32, 33].map(numPagesFor)).toEqual([0, 1, 1, 1, 2, 2, 3]);
});

test('[KV6] tokens lie in their pages in order; a token without page is refused', () => {
  const pool = createPagePool(4);
  pool.allocate(1);
  const list = createPageList(pool);
  list.growTo(17);
  expect(list.pageIds).toEqual([1, 2]);
  expect(list.capacityTokens).toBe(32);
  expect([0, 15, 16, 31].map((position) => list.slotOf(position))).toEqual([16, 31, 32, 47]);
  expect(() => list.slotOf(32)).toThrow(/no page for token 32, 32 fit/);
  expect(() => list.slotOf(-1)).toThrow(/no page for token -1/);
});

test('[KV7] growing keeps pages, takes only what is missing, and nothing when not all can be had', () => {
  const pool = createPagePool(3);
  const list = createPageList(pool);
  list.growTo(16);
  list.growTo(10);
  expect(list.pageIds).toEqual([0]);
  expect(list.canGrowTo(48)).toBe(true);
  expect(list.canGrowTo(49)).toBe(false);
  expect(() => list.growTo(49)).toThrow(expect.objectContaining({ code: 'out_of_memory' }));
  expect(list.pageIds).toEqual([0]);
  list.growTo(33);
  expect(list.pageIds).toEqual([0, 1, 2]);
});

test('[KV8] release gives everything back and the list starts anew', () => {
  const pool = createPagePool(3);
  const list = createPageList(pool);
  list.growTo(40);
  list.release();
  expect(list.pageIds).toEqual([]);
  pool.checkIntegrity([]);
  list.growTo(1);
  expect(list.pageIds).toEqual([0]);
});

test('[KV6] no two tokens of all lists share a slot', () => {
  const grow = fc.record({ list: fc.nat(2), tokens: fc.nat(80) });
  fc.assert(
    fc.property(fc.array(grow, { maxLength: 20 }), (grows) => {
      const pool = createPagePool(10);
      const lists = [createPageList(pool), createPageList(pool), createPageList(pool)];
      for (const { list: index, tokens } of grows) {
        if (tokens === 0) lists[index]!.release();
        else if (lists[index]!.canGrowTo(tokens)) lists[index]!.growTo(tokens);
      }
      const slots = lists.flatMap((list) =>
        Array.from({ length: list.capacityTokens }, (_, position) => list.slotOf(position)),
      );
      expect(new Set(slots).size).toBe(slots.length);
      pool.checkIntegrity(lists.map((list) => list.pageIds));
    }),
  );
});
