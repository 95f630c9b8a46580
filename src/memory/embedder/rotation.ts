import { createRandom } from '../../core/random.ts';
import { createSmallKernels } from '../../kernels/wasm/small-kernels.ts';

/** Rounds of signs, shuffle and Hadamard blocks: after three, each output depends on every input. */
const NUM_ROUNDS = 3;

/** The kernels of assembly/small/rotate.ts; offsets are in bytes. */
interface RotateKernel {
  /** Returns where the result is: at `values` or at `spare`. */
  rotate(values: number, spare: number, orders: number, signs: number, size: number, block: number, numRounds: number): number; // prettier-ignore
}

const PAGE_BYTES = 65_536;

/** A seeded map of `width` values to `dim`. */
interface Rotation {
  apply(input: Float32Array | Float64Array, output: Float32Array): void;
}

/**
 * Orthogonal by construction: keeps lengths and angles exactly for `dim` of at least `width`, and approximately below. It costs
 * n log n; a Gaussian matrix costs width × dim, a millisecond and 6 MB at a width of 2048.
 */
export function createRotation(width: number, dim: number, seed: number): Rotation {
  // Blocks must divide the size: the largest power of two in `dim`, at most 1024; below 16 they would not mix.
  let block = 1;
  while (block < 1024 && dim % (block * 2) === 0) block *= 2;
  if (block < 16) block = 256;
  const size = Math.ceil(Math.max(width, dim) / block) * block;
  const random = createRandom(seed);
  // [values f32][spare f32][orders i32 × rounds][signs f32 × rounds]
  const bytes = 4 * size;
  const memory = new WebAssembly.Memory({ initial: Math.ceil((bytes * (2 + 2 * NUM_ROUNDS)) / PAGE_BYTES) });
  const { rotate } = createSmallKernels(memory) as unknown as RotateKernel;
  const [ordersAt, signsAt] = [2 * bytes, (2 + NUM_ROUNDS) * bytes];
  for (let round = 0; round < NUM_ROUNDS; round++) {
    const order = new Int32Array(memory.buffer, ordersAt + round * bytes, size);
    for (let i = 0; i < size; i++) order[i] = i;
    for (let i = size - 1; i > 0; i--) {
      const j = Math.floor(random.next() * (i + 1));
      [order[i], order[j]] = [order[j]!, order[i]!];
    }
    const signs = new Float32Array(memory.buffer, signsAt + round * bytes, size);
    for (let i = 0; i < size; i++) signs[i] = random.next() < 0.5 ? -1 : 1;
  }
  const values = new Float32Array(memory.buffer, 0, size);
  const spare = new Float32Array(memory.buffer, bytes, size);
  let scale = Math.sqrt(size / dim);
  for (let round = 0; round < NUM_ROUNDS; round++) scale /= Math.sqrt(block); // no power: engines differ in its last bit
  return {
    apply(input, output) {
      values.fill(0, input.length);
      values.set(input);
      const result = rotate(0, bytes, ordersAt, signsAt, size, block, NUM_ROUNDS) === 0 ? values : spare;
      for (let i = 0; i < dim; i++) output[i] = result[i]! * scale;
    },
  };
}
