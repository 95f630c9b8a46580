import { createRandom } from '../../core/random.ts';

/** Rounds of signs, shuffle and Hadamard blocks: after three, each output depends on every input. */
const NUM_ROUNDS = 3;

/** In place: the unnormalized Walsh-Hadamard transform of `size` (a power of two) values from `start`. */
function hadamard(values: Float32Array, start: number, size: number): void {
  const end = start + size;
  let half = 1;
  if (Math.clz32(size) % 2 === 0) {
    for (let i = start; i < end; i += 2) {
      const a = values[i]!;
      const b = values[i + 1]!;
      values[i] = a + b;
      values[i + 1] = a - b;
    }
    half = 2;
  }
  // Two steps per pass.
  for (; half < size; half *= 4) {
    for (let block = start; block < end; block += 4 * half) {
      for (let i = block; i < block + half; i++) {
        const a = values[i]! + values[i + half]!;
        const b = values[i]! - values[i + half]!;
        const c = values[i + 2 * half]! + values[i + 3 * half]!;
        const d = values[i + 2 * half]! - values[i + 3 * half]!;
        values[i] = a + c;
        values[i + half] = b + d;
        values[i + 2 * half] = a - c;
        values[i + 3 * half] = b - d;
      }
    }
  }
}

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
  let scale = Math.sqrt(size / dim);
  for (let round = 0; round < NUM_ROUNDS; round++) scale /= Math.sqrt(block); // no power: engines differ in its last bit
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
