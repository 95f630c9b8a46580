import { expect, test } from 'vitest';
import { modelSizeOf } from './model-size.ts';
import { bytesPerElement, type Precision } from './precision.ts';

test('size classes and their borders', () => {
  const sizes = [0, 999_999_999, 1e9, 2_999_999_999, 3e9, 13e9, 13_000_000_001].map(modelSizeOf);
  expect(sizes).toEqual(['tiny', 'tiny', 'small', 'small', 'medium', 'medium', 'large']);
});

test('bytes per element count the scales of block formats', () => {
  const precisions: Precision[] = ['fp32', 'fp16', 'bf16', 'q8', 'q4', 'q4k'];
  expect(precisions.map(bytesPerElement)).toEqual([4, 2, 2, 1.0625, 0.5625, 0.5625]);
});
