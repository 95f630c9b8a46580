/**
 * Vectors like an embedder's: several thousand topics, each with directions along which its texts differ, a few shared
 * directions, and noise in all dimensions. Neighbours of a text are mostly, but not only, of its topic.
 */
export interface ClusteredVectors {
  readonly dim: number;
  /** f32[numVectors × dim], by draw */
  readonly vectors: Float32Array;
  readonly topics: Int32Array;
  readonly queries: Float32Array;
}

const LATENT = 48;
/** Spread of a topic's texts: half as far from it as topics are from each other. */
const SPREAD = 0.6;
const NOISE = 0.25;

/** 32 bits at a time: two hundred million draws must not take longer than the searches. */
function createBits(seed: number): () => number {
  let [x, y, z, w] = [seed ^ 0x9e3779b9, 362436069, 521288629, 88675123];
  return () => {
    const t = x ^ (x << 11);
    [x, y, z] = [y, z, w];
    w = w ^ (w >>> 19) ^ t ^ (t >>> 8);
    return w;
  };
}

export function makeClusteredVectors(
  numVectors: number,
  numQueries: number,
  dim: number,
  numTopics: number,
  seed: number,
): ClusteredVectors {
  const bits = createBits(seed);
  const uniform = (): number => bits() / 2147483648; // -1 to 1.
  const normal = (): number => (uniform() + uniform() + uniform()) * 1; // Variance 1.
  const basis = Float32Array.from({ length: LATENT * dim }, () => normal() / Math.sqrt(dim));
  const centers = Float32Array.from({ length: numTopics * LATENT }, normal);
  const topics = new Int32Array(numVectors);
  const latent = new Float32Array(LATENT);
  const fill = (out: Float32Array, count: number, note: (i: number, topic: number) => void): void => {
    const noise = (NOISE * Math.sqrt(3 * LATENT)) / dim ** 0.5 / LATENT ** 0.5;
    for (let i = 0; i < count; i++) {
      // Topics of uneven size: the square makes the first ones large.
      const topic = Math.floor(((bits() >>> 0) / 4294967296) ** 2 * numTopics);
      note(i, topic);
      for (let j = 0; j < LATENT; j++) latent[j] = centers[topic * LATENT + j]! + SPREAD * normal();
      const row = out.subarray(i * dim, (i + 1) * dim);
      for (let d = 0; d < dim; d++) row[d] = noise * uniform();
      for (let j = 0; j < LATENT; j++) {
        const weight = latent[j]!;
        for (let d = 0, at = j * dim; d < dim; d++, at++) row[d]! += weight * basis[at]!;
      }
    }
  };
  const vectors = new Float32Array(numVectors * dim);
  const queries = new Float32Array(numQueries * dim);
  fill(vectors, numVectors, (i, topic) => (topics[i] = topic));
  fill(queries, numQueries, () => {});
  return { dim, vectors, topics, queries };
}
