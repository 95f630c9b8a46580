import { expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { createSmallKernels } from './small-kernels.ts';

const NUM_ROUNDS = 3;

/** The scalar twin: two steps of the transform per pass, computed in f64 and stored as f32. */
function hadamard(values: Float32Array): void {
  const size = values.length;
  let half = 1;
  if (Math.log2(size) % 2 === 1) {
    for (let i = 0; i < size; i += 2) values.set([values[i]! + values[i + 1]!, values[i]! - values[i + 1]!], i);
    half = 2;
  }
  for (; half < size; half *= 4) {
    for (let block = 0; block < size; block += 4 * half) {
      for (let i = block; i < block + half; i++) {
        const [a, b] = [values[i]! + values[i + half]!, values[i]! - values[i + half]!];
        const [c, d] = [values[i + 2 * half]! + values[i + 3 * half]!, values[i + 2 * half]! - values[i + 3 * half]!];
        [a + c, b + d, a - c, b - d].forEach((value, k) => (values[i + k * half] = value));
      }
    }
  }
}

test.each([
  [384, 128],
  [768, 256],
  [2048, 1024],
  [48, 16],
])('rotates %i values in blocks of %i with the bits of the scalar twin', (size, block) => {
  const bytes = 4 * size;
  const memory = new WebAssembly.Memory({ initial: 2 });
  const { rotate } = createSmallKernels(memory) as unknown as Record<string, (...args: number[]) => number>;
  const random = createRandom(size);
  const values = new Float32Array(memory.buffer, 0, size);
  const orders = new Int32Array(memory.buffer, 2 * bytes, NUM_ROUNDS * size);
  const signs = new Float32Array(memory.buffer, 5 * bytes, NUM_ROUNDS * size);
  for (let i = 0; i < size; i++) values[i] = (random.next() - 0.5) * 10 ** Math.floor(random.next() * 12 - 6); // rounded in every sum
  for (let i = 0; i < NUM_ROUNDS * size; i++) {
    orders[i] = ((i + 1) * 7) % size;
    signs[i] = random.next() < 0.5 ? -1 : 1;
  }
  let twin = values.slice();
  for (let round = 0; round < NUM_ROUNDS; round++) {
    const at = round * size;
    twin = twin.map((_, i) => twin[orders[at + i]!]! * signs[at + i]!);
    for (let start = 0; start < size; start += block) hadamard(twin.subarray(start, start + block));
  }
  const result = rotate!(0, bytes, 2 * bytes, 5 * bytes, size, block, NUM_ROUNDS);
  expect(new Float32Array(memory.buffer, result, size)).toEqual(twin);
});

test('removes the mean and directions with the bits of the scalar twin', () => {
  const [width, count, total] = [37, 3, 0.7];
  const memory = new WebAssembly.Memory({ initial: 1 });
  const { removeDirections } = createSmallKernels(memory) as unknown as Record<string, (...args: number[]) => number>;
  const all = new Float64Array(memory.buffer, 0, (2 + count) * width);
  const random = createRandom(1);
  for (let i = 0; i < all.length; i++) all[i] = random.next() - 0.5;
  const row = (i: number): Float64Array => all.slice(i * width, (i + 1) * width);
  let twin = row(0).map((value, i) => value - total * row(1)[i]!);
  for (let k = 0; k < count; k++) {
    const direction = row(2 + k);
    const part = twin.reduce((sum, value, i) => sum + value * direction[i]!, 0);
    twin = twin.map((value, i) => value - part * direction[i]!);
  }
  removeDirections!(0, 8 * width, 16 * width, width, count, total);
  expect(row(0)).toEqual(twin);
});
