import { expect, test } from 'vitest';
import { kvHeadBytes, kvLayerBytes, type KvPrecision } from './contract.ts';

const sizes: [KvPrecision, number, number, number][] = [
  // precision, head size, bytes of a head's K and V, bytes of a layer with 4 heads
  ['f32', 64, 2 * 16 * 64 * 4, 32768],
  ['f16', 64, 2 * 16 * 64 * 2, 16384],
  ['q8', 64, 64 * 2 + 64 * 16 + 16 * 2 + 16 * 64, 8832],
  ['q4', 64, 64 * 4 + 64 * 8 + 16 * 4 + 16 * 32, 5376],
  ['f16', 128, 2 * 16 * 128 * 2, 32768],
  ['q8', 128, 128 * 2 + 128 * 16 + 16 * 2 + 16 * 128, 17536],
  ['q4', 128, 128 * 4 + 128 * 8 + 16 * 4 + 16 * 64, 10496],
];
test.each(sizes)('a %s page with heads of %d takes %d bytes per head, %d per layer of four', (...row) => {
  const [precision, headDim, headBytes, layerBytes] = row;
  expect(kvHeadBytes(headDim, precision)).toBe(headBytes);
  expect(kvLayerBytes(4, headDim, precision)).toBe(layerBytes);
});

test('layers start at cache lines', () => {
  expect(kvLayerBytes(1, 20, 'q8')).toBe(Math.ceil((34 * 20 + 32) / 64) * 64);
});
