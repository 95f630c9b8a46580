import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createPooler, POOLINGS } from './pooling.ts';

/** Row p is [p + 1, -p]. */
const rows = (first: number, numRows: number): Float32Array =>
  Float32Array.from(Array.from({ length: numRows }, (_, i) => [first + i + 1, -(first + i)]).flat());

const expected = (length: number) => ({
  mean: [(length + 1) / 2, (1 - length) / 2],
  last: [length, 1 - length],
  cls: [1, 0],
});

test('[E25] pools the same however a sequence is split or recomputed', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...POOLINGS),
      fc.integer({ min: 1, max: 40 }),
      fc.array(fc.record({ numRows: fc.integer({ min: 1, max: 12 }), back: fc.integer({ min: 0, max: 9 }) })),
      (pooling, length, cuts) => {
        const pooler = createPooler(pooling, length);
        let start = 0;
        for (const { numRows, back } of [...cuts, { numRows: length, back: 0 }]) {
          start = Math.max(0, start - back); // preempted: cached pages may end before the pooled rows
          const end = Math.min(length, start + numRows);
          const needed = pooler.neededRows(start, end);
          pooler.add(needed, rows(needed.first, needed.numRows));
          start = end;
        }
        expect([...pooler.result()]).toEqual(expected(length)[pooling]);
      },
    ),
  );
});

test('requests only the rows it pools', () => {
  expect(createPooler('mean', 9).neededRows(2, 5)).toEqual({ first: 2, numRows: 3 });
  expect(createPooler('last', 9).neededRows(2, 8).numRows).toBe(0);
  expect(createPooler('last', 9).neededRows(2, 9)).toEqual({ first: 8, numRows: 1 });
  expect(createPooler('cls', 9).neededRows(0, 9)).toEqual({ first: 0, numRows: 1 });
  expect(createPooler('cls', 9).neededRows(1, 9).numRows).toBe(0);
});
