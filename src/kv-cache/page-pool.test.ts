import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createPagePool } from './page-pool.ts';

test('[KV2] [KV5] a fresh pool hands out pages 0, 1, 2, … with one reference each', () => {
  const pool = createPagePool(5);
  expect(pool.canAllocate(5)).toBe(true);
  expect(pool.canAllocate(6)).toBe(false);
  expect(pool.allocate(2)).toEqual([0, 1]);
  expect(pool.allocate(3)).toEqual([2, 3, 4]);
  expect([0, 1, 2, 3, 4].map((pageId) => pool.referenceCount(pageId))).toEqual([1, 1, 1, 1, 1]);
  expect(pool.numFreePages).toBe(0);
});

test('[KV5] released pages come back in the order they had', () => {
  const pool = createPagePool(6);
  const pages = pool.allocate(4);
  pool.release(pages.slice(1, 3));
  expect(pool.allocate(3)).toEqual([1, 2, 4]);
});

test('[KV3] allocate without room says both numbers and changes nothing', () => {
  const pool = createPagePool(3);
  pool.allocate(2);
  expect(() => pool.allocate(2)).toThrow(
    expect.objectContaining({
      code: 'out_of_memory',
      message: '2 KV pages asked, 1 of 3 are free',
      data: { neededPages: 2, freePages: 1, numPages: 3 },
    }),
  );
  expect(pool.numFreePages).toBe(1);
  pool.checkIntegrity([[0, 1]]);
});

test('[KV4] a page is free after its last release; one release more throws', () => {
  const pool = createPagePool(1);
  pool.allocate(1);
  pool.retain(0);
  pool.release([0]);
  expect(pool.numFreePages).toBe(0);
  pool.release([0]);
  expect(pool.numFreePages).toBe(1);
  expect(() => pool.release([0])).toThrow(expect.objectContaining({ code: 'internal' }));
  expect(() => pool.retain(0)).toThrow(expect.objectContaining({ code: 'internal' }));
});

test('[KV9] a leaked page and a page used without reference are both found', () => {
  const pool = createPagePool(4);
  const pages = pool.allocate(2);
  pool.checkIntegrity([pages]);
  expect(() => pool.checkIntegrity([])).toThrow(/page 0 counts 1 references, 0 exist/);
  expect(() => pool.checkIntegrity([pages, [3]])).toThrow(/page 3 counts 0 references, 1 exist/);
});

test('a pool of no, half or endless pages is refused', () => {
  for (const numPages of [0, -1, 1.5, NaN, 2 ** 40]) {
    expect(() => createPagePool(numPages)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  }
});

test('[KV1] any order of allocate, retain and release keeps free + in use = total', () => {
  const command = fc.record({ kind: fc.constantFrom('allocate', 'retain', 'release'), amount: fc.nat(9) });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
      const pool = createPagePool(8);
      const owners: number[][] = [];
      for (const { kind, amount } of commands) {
        const owner = owners[amount % Math.max(1, owners.length)];
        if (kind === 'allocate' && pool.canAllocate(amount)) owners.push(pool.allocate(amount));
        if (kind === 'retain' && owner) {
          for (const pageId of owner) pool.retain(pageId);
          owners.push([...owner]);
        }
        if (kind === 'release' && owner) {
          pool.release(owner);
          owners.splice(owners.indexOf(owner), 1);
        }
        pool.checkIntegrity(owners);
        expect(pool.numFreePages).toBe(8 - new Set(owners.flat()).size);
      }
    }),
  );
});
