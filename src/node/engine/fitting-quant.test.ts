import { expect, test } from 'vitest';
import type { KernelPackFactory } from '../../kernels/contract.ts';
import type { PlacedWeight } from '../../models/weight-store.ts';
import { rowBytes } from '../../quant/index.ts';
import { findFittingQuant } from './fitting-quant.ts';

const factory = {
  matrixBytes: (type, numRows, numCols) => numRows * rowBytes(type, numCols),
} as KernelPackFactory;
const weight = (type: PlacedWeight['type'], numRows: number, numCols: number, sizeBytes: number): PlacedWeight => ({
  name: 'w',
  type,
  numRows,
  numCols,
  offset: 0,
  sizeBytes,
});
// A matrix of 1024 x 256 values, a vector, and a matrix that only formats with blocks of 32 can hold.
const weights = [weight('F16', 1024, 256, 524_288), weight(null, 1, 256, 1024), weight('F16', 10, 32, 640)];
const bytesOf = (bitsPerWeight: number): number => (262_144 * bitsPerWeight) / 8;

test('finds the best quantization that fits beside the other memory', () => {
  const q8 = bytesOf(8.5) + 1024 + 340;
  expect(findFittingQuant(weights, factory, 5000, q8 + 5000)).toEqual({ name: 'Q8_0', totalBytes: q8 + 5000 });
  expect(findFittingQuant(weights, factory, 5001, q8 + 5000)).toEqual({
    name: 'Q6_K',
    totalBytes: bytesOf(6.5625) + 1024 + 640 + 5001,
  });
});

test('finds none if even the smallest does not fit', () => {
  expect(findFittingQuant(weights, factory, 0, bytesOf(4))).toBeNull();
});
