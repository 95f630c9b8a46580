import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ArenaRange } from './contract.ts';
import { mergeRanges, subtractRanges } from './ranges.ts';

const range = fc.record({ offset: fc.nat(20), sizeBytes: fc.nat(8) });
const bytesOf = (ranges: readonly ArenaRange[]): Set<number> =>
  new Set(ranges.flatMap(({ offset, sizeBytes }) => Array.from({ length: sizeBytes }, (_, i) => offset + i)));

test('the bytes of a range that no other range has', () => {
  fc.assert(
    fc.property(range, fc.array(range), (whole, others) => {
      const left = subtractRanges(whole, mergeRanges(others));
      expect(left.every(({ sizeBytes }) => sizeBytes > 0)).toBe(true);
      const taken = bytesOf(others);
      expect(bytesOf(left)).toEqual(new Set([...bytesOf([whole])].filter((byte) => !taken.has(byte))));
    }),
  );
});
