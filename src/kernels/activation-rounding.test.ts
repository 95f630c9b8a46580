import { expect, test } from 'vitest';
import { activationRounding, roundRow, roundRowQ8_0, roundRowQ8_K } from './activation-rounding.ts';
import { quantFormats } from '../quant/index.ts';

const filled = (length: number, values: Record<number, number>): Float32Array => {
  const row = new Float32Array(length);
  for (const [index, value] of Object.entries(values)) row[Number(index)] = value;
  return row;
};

test('every tensor type has a rounding, and its rows are whole blocks of it', () => {
  expect(Object.keys(activationRounding).sort()).toEqual(Object.keys(quantFormats).sort());
  const blocks = { none: 1, bf16: 1, q8_0: 32, q8_k: 256 };
  for (const format of Object.values(quantFormats)) {
    expect(format.blockSize % blocks[activationRounding[format.name]], format.name).toBe(0);
  }
});

test('q8_0: the peak becomes ±127, ties round to even, the scale is a half', () => {
  const { quants, scales } = roundRowQ8_0(filled(64, { 0: -127, 1: 0.5, 2: 1.5, 3: 2.5, 4: -0.5, 5: -1.5, 6: 64.4 }));
  expect([...quants.subarray(0, 8)]).toEqual([-127, 0, 2, 2, 0, -2, 64, 0]);
  expect([...scales]).toEqual([1, 0]);
  // 1/127 = 0.007874015748… is between two halves; 0.00787353515625 is the nearer.
  expect(roundRowQ8_0(filled(32, { 3: 1 })).scales[0]).toBe(0.00787353515625);
});

test('q8_k: the first largest becomes -127 and its opposite 127, the scale stays f32', () => {
  const { quants, scales } = roundRowQ8_K(filled(512, { 0: 127, 1: -127, 2: 0.5, 3: 1.5, 4: -2.5 }));
  expect([...quants.subarray(0, 6)]).toEqual([-127, 127, 0, -2, 2, 0]);
  expect([...scales]).toEqual([-1, 0]);
  expect(roundRowQ8_K(filled(256, { 9: 1 })).scales[0]).toBe(Math.fround(1 / -127));
});

test('roundRow decodes the rounded row, or returns the row itself', () => {
  const row = filled(256, { 0: 1, 255: -0.5 });
  expect(roundRow(row, 'none')).toBe(row);
  expect(roundRow(row, 'q8_k')[0]).toBeCloseTo(1, 6);
  expect(roundRow(row, 'q8_0')[255]).toBe(-127 * roundRowQ8_0(row).scales[7]!);
});
