import { expect, test } from 'vitest';
import { createRandom } from '../core/random.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { writeErrorWeights } from './error-weights.ts';
import { dequantizeRow, quantFormats, quantizeRow } from './index.ts';

/** As in llama.cpp: their scale follows from the extreme value, or their error is too small to matter. */
const UNWEIGHTED: readonly string[] = 'F32 F16 BF16 Q8_0 Q8_K TQ1_0 TQ2_0 Q1_0 Q2_0 MXFP4 NVFP4'.split(' ');
const names = (Object.keys(quantFormats) as TensorTypeName[]).filter((name) => !UNWEIGHTED.includes(name));

const random = createRandom(3);
const values = Float32Array.from({ length: 1024 }, () => random.next() + random.next() - 1);
/** Every fifth column matters a hundred times as much. */
const importance = Float32Array.from({ length: 1024 }, (_, col) => (col % 5 === 0 ? 100 : 1));
const weights = new Float32Array(1024);
writeErrorWeights(values, importance, 0, 1024, weights);

function error(name: TensorTypeName, bytes: Uint8Array, of: Float32Array): number {
  const read = new Float32Array(1024);
  dequantizeRow(name, bytes, read, 1024);
  return values.reduce((sum, value, i) => sum + of[i]! * (value - read[i]!) ** 2, 0);
}

test.each(names)('%s lowers the weighted error with weights', (name) => {
  const plain = error(name, quantizeRow(name, values), importance);
  expect(error(name, quantizeRow(name, values, weights), importance)).toBeLessThan(0.97 * plain);
});

test('a block whose columns no text used still has a scale', () => {
  const unused = new Float32Array(1024).fill(1).fill(0, 0, 256);
  const out = new Float32Array(1024);
  writeErrorWeights(values, unused, 0, 1024, out);
  for (const name of names) {
    const read = new Float32Array(1024);
    dequantizeRow(name, quantizeRow(name, values, out), read, 1024);
    expect(read.subarray(0, 256).some((value) => value !== 0)).toBe(true);
  }
});
