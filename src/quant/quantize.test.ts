import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRandom } from '../core/random.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { dequantizeRow, quantFormats, quantizeRow } from './index.ts';

/**
 * rms: the relative root mean square error on normally distributed values, a few percent above what the fits reach;
 * plain rounding exceeds it where there is a fit.
 * worst: the largest error of one value relative to the block's largest magnitude. Half a step, or a whole one where
 * the level opposite the extreme is missing; in super-blocks, a sub-block so small that its scale rounds to zero.
 * reach: the largest multiple of its half scale that a block can express. The half has a resolution of 2^-24, so tiny
 * blocks lose up to that many such steps.
 */
const LIMITS: Record<TensorTypeName, { rms: number; worst: number; reach: number }> = {
  F32: { rms: 0, worst: 0, reach: 0 },
  F16: { rms: 0.00022, worst: 2 ** -11, reach: 1 },
  BF16: { rms: 0.0017, worst: 2 ** -8, reach: 1 },
  Q4_0: { rms: 0.088, worst: 0.126, reach: 8 },
  Q4_1: { rms: 0.08, worst: 0.068, reach: 16 },
  Q5_0: { rms: 0.044, worst: 0.0635, reach: 16 },
  Q5_1: { rms: 0.039, worst: 0.0335, reach: 32 },
  Q8_0: { rms: 0.0056, worst: 0.0045, reach: 127 },
  Q2_K: { rms: 0.28, worst: 0.7, reach: 4 * 15 },
  Q3_K: { rms: 0.147, worst: 0.35, reach: 4 * 32 },
  Q4_K: { rms: 0.0735, worst: 0.2, reach: 16 * 63 },
  Q5_K: { rms: 0.037, worst: 0.1, reach: 32 * 63 },
  Q6_K: { rms: 0.0178, worst: 0.05, reach: 32 * 128 },
  Q8_K: { rms: 0.0073, worst: 0.0045, reach: 0 },
  IQ1_S: { rms: 0.452, worst: 1, reach: 15 * 9 },
  IQ1_M: { rms: 0.42, worst: 1, reach: 15 * 9 },
  IQ2_XXS: { rms: 0.3297, worst: 1, reach: 4 * 43 },
  IQ2_XS: { rms: 0.288, worst: 1, reach: 4 * 43 },
  IQ2_S: { rms: 0.24, worst: 1, reach: 4 * 43 },
  IQ3_XXS: { rms: 0.179, worst: 1, reach: 8 * 62 },
  IQ3_S: { rms: 0.131, worst: 1, reach: 31 * 15 },
  IQ4_NL: { rms: 0.076, worst: 0.18, reach: 127 },
  IQ4_XS: { rms: 0.077, worst: 0.2, reach: 127 * 32 },
  TQ1_0: { rms: 0.83, worst: 0.51, reach: 1 },
  TQ2_0: { rms: 0.83, worst: 0.51, reach: 1 },
  Q1_0: { rms: 0.6, worst: 1, reach: 1 },
  Q2_0: { rms: 0.73, worst: 0.51, reach: 1 },
  MXFP4: { rms: 0.113, worst: 0.26, reach: 0 },
  NVFP4: { rms: 0.091, worst: 0.26, reach: 2 ** 13 }, // its smallest value is 2^-10
};
const names = Object.keys(quantFormats) as TensorTypeName[];

function roundTrip(name: TensorTypeName, values: Float32Array): Float32Array {
  const out = new Float32Array(values.length);
  dequantizeRow(name, quantizeRow(name, values), out, values.length);
  return out;
}

function normalValues(count: number, scale: number): Float32Array {
  const random = createRandom(20);
  return Float32Array.from(
    { length: count },
    () => scale * Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next()),
  );
}

test.each(names)('%s keeps the error of weights within its limit, at any scale', (name) => {
  for (const scale of [0.02, 1, 300]) {
    const values = normalValues(256 * 64, scale);
    const read = roundTrip(name, values);
    let errors = 0;
    let squares = 0;
    values.forEach((value, i) => {
      errors += (value - read[i]!) ** 2;
      squares += value ** 2;
    });
    expect(Math.sqrt(errors / squares)).toBeLessThanOrEqual(LIMITS[name].rms);
  }
});

/** Blocks that challenge fits: one sign only, outliers, quiet and loud sub-blocks, few distinct values. */
const shapedBlock = fc
  .record({
    uniform: fc.array(fc.float({ min: -1, max: 1, noNaN: true }), { minLength: 256, maxLength: 256 }),
    shape: fc.constantFrom<(u: number, i: number) => number>(
      (u) => u,
      (u) => u ** 9,
      (u) => Math.abs(u),
      (u) => -Math.abs(u),
      (u, i) => (i & 16 ? u : u / 10),
      (u, i) => (i === 77 ? 1 : u / 100),
      (u) => u * 1e-4,
      (u) => Math.round(u * 2) / 2,
    ),
    scale: fc.constantFrom(0.01, 1, 100),
  })
  .map(({ uniform, shape, scale }) => Float32Array.from(uniform, (u, i) => scale * shape(u, i)));

test.each(names)('%s keeps each value within its limit for any block', (name) => {
  fc.assert(
    fc.property(shapedBlock, (values) => {
      const read = roundTrip(name, values);
      const { blockSize } = quantFormats[name];
      for (let start = 0; start < 256; start += blockSize) {
        const block = values.subarray(start, start + blockSize);
        const largest = block.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
        const limit = LIMITS[name].worst * largest + LIMITS[name].reach * 2 ** -24;
        const worst = block.reduce((max, value, i) => Math.max(max, Math.abs(value - read[start + i]!)), 0);
        expect(worst).toBeLessThanOrEqual(limit);
      }
    }),
    { numRuns: 60 },
  );
});

test.each(names)('%s writes zeros as zeros', (name) => {
  const read = roundTrip(name, new Float32Array(256));
  expect(read.every((value) => value === 0)).toBe(true);
});

test.each(['F32', 'F16', 'BF16', 'Q4_0', 'Q4_1', 'Q5_0', 'Q5_1', 'Q8_0', 'Q2_0', 'TQ1_0', 'TQ2_0'] as const)(
  '%s loses nothing when decoded values are encoded again',
  (name) => {
    const once = roundTrip(name, normalValues(256 * 8, 1));
    expect(roundTrip(name, once)).toEqual(once);
  },
);
