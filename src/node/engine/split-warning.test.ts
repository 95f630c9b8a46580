import { expect, test } from 'vitest';
import { splitWarning } from './split-warning.ts';

const sides = { gpu: { weightBytes: 0, kvBytes: 0 }, cpu: { weightBytes: 0, kvBytes: 0 } };
const none = { numLayers: 5, numGpuLayers: 0, ...sides };

test('a GPU that computes no layer is reported with the limit and the layers', () => {
  expect(splitWarning({ gpuLayers: 'auto', gpuMemoryBytes: 10 }, none)).toBe(
    'no layer of the model fits into 10 bytes on the GPU: the processor computes all 5',
  );
  expect(splitWarning({ gpuLayers: 'auto', gpuMemoryBytes: null }, none)).toMatch(/into its largest buffer on the GPU/);
});

test('a chosen 0, layers on the GPU and models without a split are not', () => {
  expect(splitWarning({ gpuLayers: 0, gpuMemoryBytes: null }, none)).toBe(null);
  expect(splitWarning({ gpuLayers: 'auto', gpuMemoryBytes: 10 }, { ...none, numGpuLayers: 1 })).toBe(null);
  expect(splitWarning({ gpuLayers: 'auto', gpuMemoryBytes: null }, undefined)).toBe(null);
});
