import { createRandom, type Random } from '../../src/core/random.ts';

/** Normal deviates from a uniform source. */
export function createNormal(random: Random): () => number {
  return () => Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}

/** `length` normal values times `scale`; the same for the same seed. */
export function normals(length: number, seed: number, scale = 1): Float32Array {
  const normal = createNormal(createRandom(seed));
  const values = new Float32Array(length);
  for (let i = 0; i < length; i++) values[i] = normal() * scale;
  return values;
}
