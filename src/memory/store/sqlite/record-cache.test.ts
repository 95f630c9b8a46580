import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { MemoryRecord } from '../../types.ts';
import { createRecordCache } from './record-cache.ts';
import type { Tenant } from '../sealer.ts';

const tenantOf = (id: string): Tenant => ({ id }) as Tenant;
const recordOf = (id: string): MemoryRecord => ({ id }) as MemoryRecord;
const [alice, bob] = [tenantOf('alice'), tenantOf('bob')];

test('[MS33] evicts the least recently used record beyond its bytes', () => {
  const cache = createRecordCache(320);
  for (let row = 0; row < 16; row++) cache.set(alice, row, recordOf(`${row}`), 20);
  cache.get(alice, 0);
  cache.set(alice, 16, recordOf('16'), 20);
  expect(cache.get(alice, 1)).toBeUndefined();
  expect(cache.get(alice, 0)).toEqual({ id: '0' });
  // Written again it is counted once, and what is long is not kept at all.
  for (let i = 0; i < 100; i++) cache.set(alice, 16, recordOf('16'), 20);
  expect(cache.get(alice, 2)).toEqual({ id: '2' });
  cache.set(alice, 99, recordOf('long'), 21);
  expect(cache.get(alice, 99)).toBeUndefined();
});

test('[MS33] does not return a row of another tenant, or of a recreated one', () => {
  const cache = createRecordCache(1000);
  cache.set(alice, 1, recordOf('1'), 10);
  expect(cache.get(bob, 1)).toBeUndefined();
  expect(cache.get(tenantOf('alice'), 1)).toBeUndefined();
  cache.drop(1);
  expect(cache.get(alice, 1)).toBeUndefined();
  cache.set(alice, 2, recordOf('2'), 10);
  cache.clear();
  expect(cache.get(alice, 2)).toBeUndefined();
});

test('[MS33] keeps the same records as a plain list for any history', () => {
  const step = fc.tuple(fc.constantFrom('get', 'set', 'set', 'drop', 'clear'), fc.nat(50), fc.integer({ min: 1, max: 6 })); // prettier-ignore
  fc.assert(
    fc.property(fc.array(step, { minLength: 200, maxLength: 400 }), (steps) => {
      const cache = createRecordCache(96);
      let model: { row: number; bytes: number }[] = [];
      const without = (row: number): typeof model => model.filter((one) => one.row !== row);
      for (const [what, row, bytes] of steps) {
        const known = model.find((one) => one.row === row);
        if (what === 'get') {
          expect(cache.get(alice, row)?.id).toBe(known === undefined ? undefined : `${row}`);
          if (known !== undefined) model = [...without(row), known];
        } else if (what === 'set') {
          cache.set(alice, row, recordOf(`${row}`), bytes);
          model = [...without(row), { row, bytes }];
          while (model.reduce((sum, one) => sum + one.bytes, 0) > 96) model.shift();
        } else if (what === 'drop') {
          cache.drop(row);
          model = without(row);
        } else if (row === 0) {
          cache.clear();
          model = [];
        }
      }
      const kept = Array.from({ length: 51 }, (_, row) => row).filter((row) => cache.get(alice, row) !== undefined);
      expect(kept).toEqual(model.map(({ row }) => row).toSorted((a, b) => a - b));
    }),
    { numRuns: 50, seed: 5, endOnFailure: true },
  );
});
