// The smallest index there can be, for tests of what stands on one.
import type { VectorIndex } from '../vector-index/types.ts';

export function cosine(a: Float32Array, b: Float32Array): number {
  let [dot, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i]! * b[i]!;
    aa += a[i]! * a[i]!;
    bb += b[i]! * b[i]!;
  }
  return dot / Math.sqrt(aa * bb);
}

export function createBruteForce(dim: number): VectorIndex & { isDisposed: boolean } {
  const vectors = new Map<number, Float32Array>();
  return {
    dim,
    metric: 'cosine',
    isDisposed: false,
    get size() {
      return vectors.size;
    },
    get memoryBytes() {
      return vectors.size * dim * 4;
    },
    hasGraph: false,
    async add(key, vector) {
      vectors.set(key, vector.slice());
    },
    async addMany(keys, all) {
      keys.forEach((key, i) => vectors.set(key, all.slice(i * dim, (i + 1) * dim)));
    },
    has: (key) => vectors.has(key),
    get: (key) => vectors.get(key) ?? null,
    delete: (key) => vectors.delete(key),
    search({ vector, k, filter }) {
      const keys = [...vectors.keys()].filter((key) => filter?.has(key) ?? true);
      const hits = keys.map((key) => ({ key, score: cosine(vector, vectors.get(key)!) }));
      return hits.sort((a, b) => b.score - a.score || a.key - b.key).slice(0, k);
    },
    save: () => ({ generation: 0, blocksWritten: 0 }),
    checkIntegrity() {},
    async dispose() {
      this.isDisposed = true;
      vectors.clear();
    },
  };
}
