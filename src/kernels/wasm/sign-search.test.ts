import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { COARSE_BYTES, createSignSearch, FINE_BYTES, NUM_SIGNS, ROW_MULTIPLE } from './sign-search.ts';

const ROW = COARSE_BYTES + FINE_BYTES;

function popcount(value: number): number {
  return value === 0 ? 0 : (value & 1) + popcount(value >>> 1);
}

test('the stored bytes are those of the source', () => {
  const script = fileURLToPath(new URL('../../../scripts/build-small-kernels.mjs', import.meta.url));
  const compiled = execFileSync(process.execPath, [script, '--print'], { encoding: 'utf8' });
  expect(readFileSync(new URL('./small-bytes.ts', import.meta.url), 'utf8')).toBe(compiled);
});

test.each([1024, 2048])('takes the signs of a Walsh-Hadamard transform of %i values', (length) => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const { takeSigns } = createSignSearch(memory);
  const values = new Float32Array(memory.buffer, 0, length);
  const random = createRandom(length);
  for (let i = 0; i < length; i++) values[i] = Math.floor(random.next() * 15) - 7; // sums of integers are exact
  const input = Array.from(values);
  takeSigns(0, length, 4 * length, NUM_SIGNS / 32);
  const words = new Uint32Array(memory.buffer, 4 * length, NUM_SIGNS / 32);
  for (let i = 0; i < NUM_SIGNS; i++) {
    const sum = input.reduce((total, value, j) => total + (popcount(i & j) % 2 === 0 ? value : -value), 0);
    expect(values[i]).toBe(sum);
    expect((words[i >> 5]! >>> (i & 31)) & 1).toBe(sum > 0 ? 1 : 0);
  }
});

test.each([1, 7, 8, 9, 300])('finds the nearest of %i rows as a loop over their bits does', (numRows) => {
  const random = createRandom(numRows);
  const rows = Array.from({ length: numRows + 1 }, () => Uint8Array.from({ length: ROW }, () => random.next() * 256));
  const query = rows[numRows]!;
  // [coarse][fine][query][distances][histogram][slots], with space for eight rows at a time
  const numPlaces = numRows + 8;
  const at = { coarse: 0, fine: 0, query: 0, distances: 0, histogram: 0, slots: 0 };
  const sizes = [COARSE_BYTES * numPlaces, FINE_BYTES * numPlaces, ROW, 16 * numPlaces, 4 * (NUM_SIGNS + 1), 4 * numPlaces]; // prettier-ignore
  Object.keys(at).forEach((name, i) => {
    at[name as keyof typeof at] = sizes.slice(0, i).reduce((sum, one) => sum + one, 0);
  });
  const memory = new WebAssembly.Memory({ initial: 2 });
  const bytes = new Uint8Array(memory.buffer);
  rows.slice(0, numRows).forEach((row, i) => {
    bytes.set(row.subarray(0, COARSE_BYTES), at.coarse + i * COARSE_BYTES);
    bytes.set(row.subarray(COARSE_BYTES), at.fine + i * FINE_BYTES);
  });
  bytes.set(query, at.query);
  const differing = (row: Uint8Array, from: number, to: number): number =>
    row.slice(from, to).reduce((sum, byte, i) => sum + popcount(byte ^ query[from + i]!), 0);
  const within = (some: readonly number[], distanceOf: (i: number) => number, count: number): number[] => {
    const limit = some.map(distanceOf).toSorted((a, b) => a - b)[Math.min(count, some.length) - 1]!;
    return some.filter((i) => distanceOf(i) <= limit);
  };
  const all = rows.slice(0, numRows).map((_, i) => i);
  const coarse = within(all, (i) => differing(rows[i]!, 0, COARSE_BYTES), 100);
  const nearest = within(coarse, (i) => differing(rows[i]!, 0, ROW), 10);
  const { findNear } = createSignSearch(memory);
  const count = findNear(at.coarse, at.fine, numRows, at.query, 100, 10, at.distances, at.histogram, at.slots);
  expect(Array.from(new Int32Array(memory.buffer, at.slots, count))).toEqual(nearest);
});

test.each([16, 48, 768])('scores rows of %i values exactly', (dim) => {
  expect(dim % ROW_MULTIPLE).toBe(0);
  const memory = new WebAssembly.Memory({ initial: 2 });
  const random = createRandom(dim);
  const query = new Int16Array(memory.buffer, 0, dim);
  const codes = new Int8Array(memory.buffer, 2 * dim, 10 * dim);
  const scales = new Float32Array(memory.buffer, 12 * dim, 10).fill(0.5);
  const slots = new Int32Array(memory.buffer, 12 * dim + 64, 3);
  const scores = new Float32Array(memory.buffer, 12 * dim + 128, 3);
  for (let i = 0; i < dim; i++) query[i] = Math.floor(random.next() * 4095) - 2047;
  for (let i = 0; i < codes.length; i++) codes[i] = Math.floor(random.next() * 255) - 127;
  query.fill(2047, 0, 2); // the extremes
  codes.fill(-127, 9 * dim, 9 * dim + 2);
  slots.set([9, 0, 4]);
  createSignSearch(memory).rankRows(0, 2 * dim, 12 * dim, dim, 12 * dim + 64, 3, 12 * dim + 128);
  slots.forEach((slot, i) => {
    const sum = query.reduce((total, value, j) => total + value * codes[slot * dim + j]!, 0);
    expect(scores[i]).toBe(Math.fround(Math.fround(sum) * scales[slot]!));
  });
});
