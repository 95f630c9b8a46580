import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createJoinHeap } from './join-heap.ts';

test('pops by priority, then from left to right, for any order of pushes', () => {
  const entry = fc.tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 1000 }));
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 700 }), (entries) => {
      const heap = createJoinHeap();
      entries.forEach(([priority, left], i) => heap.push(priority, left, i, priority));
      const popped: [number, number][] = [];
      while (heap.pop()) {
        expect(entries[heap.rightEnd]).toEqual([heap.rule, heap.left]);
        popped.push([heap.rule, heap.left]);
      }
      expect(popped).toEqual(entries.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]));
    }),
  );
});
