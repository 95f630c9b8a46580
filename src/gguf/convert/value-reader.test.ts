import { expect, test } from 'vitest';
import {
  joinTensors,
  mapValues,
  padWithZeros,
  pickColumns,
  pickRows,
  transposeMatrices,
  type ValueReader,
} from './value-reader.ts';

/** Values 0, 1, 2, …; reads outside throw. */
const counting =
  (length: number, offset = 0): ValueReader =>
  (start, out) => {
    if (start < 0 || start + out.length > length) throw new Error(`${out.length} values at ${start} of ${length}`);
    for (let i = 0; i < out.length; i++) out[i] = offset + start + i;
  };

/** Reads `length` values in pieces of `size`. */
function readAll(read: ValueReader, length: number, size: number): number[] {
  const out = new Float32Array(length);
  for (let at = 0; at < length; at += size) read(at, out.subarray(at, Math.min(at + size, length)));
  return [...out];
}

test.each([3, 6, 12])('the pieces of a tensor do not change it (%i values)', (size) => {
  expect(
    readAll(
      mapValues(counting(12), (value, position) => value + 100 * position),
      12,
      size,
    ),
  ).toEqual(Array.from({ length: 12 }, (_, i) => 101 * i));
  // Alternate rows of 3 values, and rows far apart.
  expect(
    readAll(
      pickRows(counting(24), 3, (row) => 2 * row + 1),
      12,
      size,
    ),
  ).toEqual([1, 3, 5, 7].flatMap((row) => [3 * row, 3 * row + 1, 3 * row + 2]));
  expect(
    readAll(
      pickRows(counting(3000), 3, (row) => 300 * (3 - row)),
      12,
      size,
    ),
  ).toEqual([900, 600, 300, 0].flatMap((row) => [3 * row, 3 * row + 1, 3 * row + 2]));
  // Columns 4, 2 and 0 of 5.
  const columns = pickColumns(counting(20), { numCols: 5, count: 3, sourceOf: (col) => 4 - 2 * col });
  expect(readAll(columns, 12, size)).toEqual([4, 2, 0, 9, 7, 5, 14, 12, 10, 19, 17, 15]);
  expect(readAll(joinTensors([counting(4), counting(4, 100), counting(4, 200)], 4), 12, size)).toEqual(
    [0, 100, 200].flatMap((first) => [first, first + 1, first + 2, first + 3]),
  );
  expect(readAll(padWithZeros(counting(7), 7), 12, size)).toEqual([0, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0]);
  // Two matrices of 2 x 3; the reader starts again after the end.
  const transposed = transposeMatrices(counting(12), { count: 2, numRows: 2, numCols: 3 });
  for (let i = 0; i < 2; i++) expect(readAll(transposed, 12, size)).toEqual([0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
});
