import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { moveRow, visibleRows } from './virtual-rows.ts';

test('renders every visible row and few others', () => {
  const nat = (max: number) => fc.nat(max);
  fc.assert(
    fc.property(
      nat(400_000),
      nat(2000),
      fc.integer({ min: 1, max: 80 }),
      nat(10_000),
      (scrollTop, height, rowHeight, numRows) => {
        const { first, last } = visibleRows({ scrollTop, height, rowHeight, numRows });
        expect(0 <= first && first <= last && last <= numRows).toBe(true);
        expect(last - first).toBeLessThanOrEqual(Math.ceil(height / rowHeight) + 17);
        for (const y of [scrollTop, scrollTop + height - 1]) {
          const row = Math.floor(y / rowHeight);
          if (height > 0 && row < numRows) expect(first <= row && row < last).toBe(true);
        }
      },
    ),
  );
});

test('keeps keyboard navigation within the list', () => {
  const size = { numRows: 100, pageRows: 10 };
  expect(
    ['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End', 'x'].map((key) => moveRow(key, 5, size)),
  ).toEqual([6, 4, 15, 0, 0, 99, null]);
  expect(moveRow('ArrowDown', 99, size)).toBe(99);
});
