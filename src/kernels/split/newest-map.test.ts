import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createNewestMap, type Holder } from './newest-map.ts';
import type { Side } from './sides.ts';

/** Small, so that ranges often touch. */
const SIZE = 12;

test('marks and finds ranges like an array with one holder per byte', () => {
  const marks = fc.array(fc.tuple(fc.nat(SIZE - 1), fc.nat(SIZE), fc.constantFrom<Holder>('gpu', 'cpu', 'both')));
  fc.assert(
    fc.property(marks, fc.nat(SIZE - 1), fc.nat(SIZE), fc.constantFrom<Side>('gpu', 'cpu'), (all, at, length, side) => {
      const map = createNewestMap();
      const bytes = Array.from({ length: SIZE }, (): Holder => 'both');
      for (const [offset, most, holder] of all) {
        const sizeBytes = Math.min(most, SIZE - offset);
        map.mark({ offset, sizeBytes }, holder);
        bytes.fill(holder, offset, offset + sizeBytes);
      }
      const sizeBytes = Math.min(length, SIZE - at);
      const found = map.onlyOn(side, { offset: at, sizeBytes });
      const covered = found.flatMap((range) => Array.from({ length: range.sizeBytes }, (_, i) => range.offset + i));
      const expected = bytes.flatMap((holder, i) => (holder === side && i >= at && i < at + sizeBytes ? [i] : []));
      expect(covered).toEqual(expected);
      // One range per run: transfers are few.
      expect(found.every((range, i) => i === 0 || range.offset > found[i - 1]!.offset + found[i - 1]!.sizeBytes)).toBe(
        true,
      );
    }),
    { numRuns: 2000 },
  );
});
