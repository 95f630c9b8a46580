import { createRandom } from '../../core/random.ts';

/** Rounds of signs, shuffle and Hadamard blocks: after three, each output depends on every input at any width in use. */
const NUM_ROUNDS = 3;

/** In place, orthonormal: the Walsh-Hadamard transform of `size` (a power of two) values from `start`. */
function hadamard(values: Float32Array, start: number, size: number): void {
  for (let half = 1; half < size; half *= 2) {
    for (let block = start; block < start + size; block += 2 * half) {
      for (let i = block; i < block + half; i++) {
        const a = values[i]!;
        const b = values[i + half]!;
        values[i] = a + b;
        values[i + half] = a - b;
      }
    }
  }
  const scale = 1 / Math.sqrt(size);
  for (let i = start; i < start + size; i++) values[i]! *= scale;
}

/** A seeded map of `width` values to `dim`, the same in every process. */
export interface Rotation {
  apply(input: Float32Array | Float64Array, output: Float32Array): void;
}

/**
 * Orthogonal by construction: lengths and angles are kept exactly where `dim` is at least `width`, and but for sampling where it is
 * less. It costs n log n where a Gaussian matrix costs width × dim, which at a width of 2048 is a millisecond and 6 MB.
 */
export function createRotation(width: number, dim: number, seed: number): Rotation {
  // Blocks must divide the whole: the largest power of two in `dim`, at most 1024, and at least something that mixes.
  let block = 1;
  while (block < 1024 && dim % (block * 2) === 0) block *= 2;
  if (block < 16) block = 256;
  const size = Math.ceil(Math.max(width, dim) / block) * block;
  const random = createRandom(seed);
  const rounds = Array.from({ length: NUM_ROUNDS }, () => {
    const order = Int32Array.from({ length: size }, (_, index) => index);
    for (let i = size - 1; i > 0; i--) {
      const j = Math.floor(random.next() * (i + 1));
      [order[i], order[j]] = [order[j]!, order[i]!];
    }
    return { order, signs: Float32Array.from({ length: size }, () => (random.next() < 0.5 ? -1 : 1)) };
  });
  let values = new Float32Array(size);
  let spare = new Float32Array(size);
  const scale = Math.sqrt(size / dim);
  return {
    apply(input, output) {
      values.fill(0);
      values.set(input);
      for (const { order, signs } of rounds) {
        for (let i = 0; i < size; i++) spare[i] = values[order[i]!]! * signs[i]!;
        [values, spare] = [spare, values];
        for (let start = 0; start < size; start += block) hadamard(values, start, block);
      }
      for (let i = 0; i < dim; i++) output[i] = values[i]! * scale;
    },
  };
}
