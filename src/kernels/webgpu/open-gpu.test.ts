import { expect, test } from 'vitest';
import { largestBuffer } from './open-gpu.ts';

test('the largest buffer is one that can be bound, whatever a workgroup has', () => {
  const limits = {
    maxBufferSize: 2 ** 32,
    maxStorageBufferBindingSize: 2 ** 31,
    maxComputeWorkgroupStorageSize: 32768,
  };
  expect(largestBuffer({ limits })).toBe(2 ** 31);
  expect(largestBuffer({ limits: { ...limits, maxBufferSize: 2 ** 28 } })).toBe(2 ** 28);
});
