import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { createReferencePackFactory } from '../../kernels/reference/reference-pack.ts';
import { createExactIndex, createHnswIndex, createVectorIndex } from './create-index.ts';
import { clustered, countFound, flat, keysOf, plainScore, wasm } from './index-fixture.contract.ts';
import type { Metric, VectorIndex } from './types.ts';

const reference = createReferencePackFactory();
const metrics: Metric[] = ['cosine', 'dot', 'l2'];
const range = (count: number, from = 1): number[] => Array.from({ length: count }, (_, i) => i + from);

async function using<T>(index: VectorIndex, body: () => Promise<T> | T): Promise<T> {
  try {
    return await body();
  } finally {
    await index.dispose();
  }
}

describe('exact', () => {
  test.each(metrics)('[VI1] %s: the k nearest by definition, equal scores by key', async (metric) => {
    const vectors = clustered(60, 7, 1);
    vectors.push(vectors[3]!, vectors[3]!);
    const index = await createExactIndex({ kernels: reference, dim: 7, metric, capacity: 4 });
    await using(index, async () => {
      for (const [i, vector] of vectors.entries()) await index.add(100 - i, vector);
      for (const query of clustered(10, 7, 2)) {
        const hits = index.search({ vector: query, k: 20 });
        const expected = vectors
          .map((vector, i) => ({ key: 100 - i, score: plainScore(metric, query, vector) }))
          .toSorted((a, b) => b.score - a.score || a.key - b.key);
        // Twins have equal scores to the last bit, whatever the order of other sums.
        hits.forEach(({ key, score }, i) => {
          expect(score).toBeCloseTo(expected[i]!.score, 4);
          expect(plainScore(metric, query, vectors[100 - key]!)).toBeCloseTo(expected[i]!.score, 4);
        });
        expect(hits).toEqual(hits.toSorted((a, b) => b.score - a.score || a.key - b.key));
      }
      expect(keysOf(index.search({ vector: vectors[3]!, k: 3 }))).toEqual(
        metric === 'dot' ? expect.anything() : [39, 40, 97],
      );
    });
  });
});

/** One step of a random history. */
type Step = { do: 'add' | 'delete' | 'search' | 'repair'; key: number; vector: number };
const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom('add', 'add', 'add', 'delete', 'search', 'repair'),
  key: fc.integer({ min: 1, max: 60 }),
  vector: fc.integer({ min: 0, max: 39 }),
});

describe('[VI2] [VI3] [VI5] [VI11] any history', () => {
  const pool = clustered(40, 6, 5, 4);
  const kinds = [
    [
      'hnsw',
      (seed: number) => createHnswIndex({ kernels: reference, dim: 6, m: 3, efConstruction: 12, seed, capacity: 8 }),
    ],
    [
      'becoming a graph',
      () => createVectorIndex({ kernels: reference, dim: 6, m: 3, efConstruction: 12, graphFrom: 12, capacity: 8 }),
    ],
    ['int8', () => createHnswIndex({ kernels: reference, dim: 6, m: 3, efConstruction: 12, storage: 'int8' })],
    [
      'int8 alone',
      () =>
        createHnswIndex({ kernels: reference, dim: 6, m: 3, efConstruction: 12, storage: 'int8', keepsExact: false }),
    ],
    ['exact', () => createExactIndex({ kernels: reference, dim: 6, capacity: 2 })],
  ] as const;
  test.each(kinds)('%s: k live results, the latest vectors, no key twice', async (_, create) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 120 }), fc.nat(1000), async (steps, seed) => {
        const index = await create(seed);
        const model = new Map<number, number>();
        await using(index, async () => {
          for (const { do: what, key, vector } of steps) {
            if (what === 'add') {
              await index.add(key, pool[vector]!);
              model.set(key, vector);
            } else if (what === 'delete') expect(index.delete(key)).toBe(model.delete(key));
            else if (what === 'repair') await index.addMany([], new Float32Array(0));
            const isOdd = { has: (candidate: number): boolean => candidate % 2 === 1 };
            for (const filter of [undefined, isOdd]) {
              const live = [...model.keys()].filter((candidate) => filter === undefined || isOdd.has(candidate));
              const k = 1 + (vector % 9);
              const hits = index.search({ vector: pool[vector]!, k, ef: 1 + (key % 4), ...(filter && { filter }) });
              expect(hits.length).toBe(Math.min(k, live.length));
              expect(hits.every((hit) => live.includes(hit.key))).toBe(true);
              expect(new Set(keysOf(hits)).size).toBe(hits.length);
              for (const hit of hits) {
                const score = plainScore('cosine', pool[vector]!, pool[model.get(hit.key)!]!);
                expect(Math.abs(hit.score - score)).toBeLessThan(0.03);
              }
            }
          }
          index.checkIntegrity();
          expect(index.size).toBe(model.size);
          for (const key of range(60)) expect(index.has(key)).toBe(model.has(key));
        });
      }),
      { numRuns: 12, seed: 7 },
    );
  });
});

describe('graph', () => {
  const [dim, count] = [24, 3000];
  const vectors = clustered(count, dim, 11);
  const queries = clustered(100, dim, 12);
  const small = { kernels: wasm, dim, m: 8, efConstruction: 60 };
  const build = async (order: readonly number[], more: object = {}): Promise<VectorIndex> => {
    const index = await createHnswIndex({ ...small, ...more });
    await index.addMany(order.map((i) => i + 1), flat(order.map((i) => vectors[i]!))); // prettier-ignore
    return index;
  };
  const truth = async (more: object = {}): Promise<VectorIndex> => {
    const exact = await createExactIndex({ kernels: wasm, dim, ...more });
    await exact.addMany(range(count), flat(vectors));
    return exact;
  };
  const shuffled = range(count, 0);
  const byFirst = shuffled.toSorted((a, b) => vectors[a]![0]! - vectors[b]![0]!);
  // Clusters one after the other: nearest to the first of each.
  const byCluster = shuffled.toSorted((a, b) => Math.sign(vectors[a]![1]!) - Math.sign(vectors[b]![1]!) || vectors[a]![2]! - vectors[b]![2]!); // prettier-ignore

  test.each([
    ['as drawn', shuffled, 989],
    ['sorted', byFirst, 985],
    ['by cluster', byCluster, 991],
  ] as const)('[VI14] recall of 1000, inserted %s', async (_, order, found) => {
    const [exact, index] = [await truth(), await build(order)];
    await using(exact, () =>
      using(index, () => {
        expect(countFound(exact, index, queries)).toBe(found);
      }),
    );
  });

  test.each(metrics)('[VI6] %s in int8: exact scores, recall of 1000', async (metric) => {
    const exact = await truth({ metric });
    const index = await build(shuffled, { storage: 'int8', metric });
    await using(exact, () =>
      using(index, () => {
        const found = { cosine: 989, dot: 969, l2: 995 }[metric];
        expect(countFound(exact, index, queries)).toBe(found);
        for (const vector of queries) {
          const scores = new Map(exact.search({ vector, k: 50 }).map(({ key, score }) => [key, score]));
          for (const { key, score } of index.search({ vector, k: 10 })) {
            if (scores.has(key)) expect(score).toBe(scores.get(key));
          }
        }
      }),
    );
  });

  test('[VI10] the same graph with one thread and with two, and by the same seed', async () => {
    const saved = await Promise.all(
      [{ numThreads: 1 }, { numThreads: 2 }, { numThreads: 1, seed: 2 }].map(async (more) => {
        const index = await build(shuffled.slice(0, 1500), more);
        return using(index, () => queries.map((vector) => index.search({ vector, k: 10, ef: 10 })));
      }),
    );
    expect(saved[1]).toEqual(saved[0]);
    expect(saved[2]).not.toEqual(saved[0]);
  });

  test('[VI4] [VI11] [VI12] every live vector finds itself after half were deleted and a third added', async () => {
    const index = await build(shuffled);
    await using(index, async () => {
      const random = createRandom(3);
      const live = new Map(shuffled.map((i) => [i + 1, vectors[i]!]));
      for (const key of live.keys()) {
        if (random.next() >= 0.5) continue;
        index.delete(key);
        live.delete(key);
      }
      for (const [i, vector] of clustered(900, dim, 77).entries()) {
        await index.add(i + 1, vector); // new ones, and old ones with another vector
        live.set(i + 1, vector);
      }
      index.checkIntegrity();
      const lost = (): number[] => [...live].filter(([key, vector]) => index.search({ vector, k: 1 })[0]!.key !== key).map(([key]) => key); // prettier-ignore
      expect(lost()).toEqual([]);
      const before = index.memoryBytes;
      await index.addMany([], new Float32Array(0)); // finishes the repairs that are due
      index.checkIntegrity();
      expect(lost()).toEqual([]);
      expect(index.size).toBe(live.size);
      // Freed slots are used again.
      for (let i = 0; i < 300; i++) await index.add(20_000 + i, vectors[i]!.map((value) => -value)); // prettier-ignore
      expect(index.memoryBytes).toBeLessThanOrEqual(before + 300 * 200);
    });
  });

  test('[VI2] [VI3] everything near a query deleted: the rest still comes', async () => {
    const index = await build(shuffled);
    await using(index, () => {
      const vector = queries[0]!;
      for (const key of keysOf(index.search({ vector, k: 1000 }))) index.delete(key);
      for (const each of [vector, ...queries]) {
        const hits = index.search({ vector: each, k: 10 });
        expect(hits.map(({ key }) => index.has(key))).toEqual(hits.map(() => true));
        expect(hits.length).toBe(10);
      }
      expect(index.search({ vector, k: 5000 }).length).toBe(2000);
    });
  });

  const share =
    (percent: number) =>
    (key: number): boolean =>
      (key * 7919) % 100 < percent;
  const known = (has: (key: number) => boolean) => {
    const keys = new Set(range(count).filter(has));
    return { has: (key: number) => keys.has(key), size: keys.size, keys: () => keys };
  };
  test.each([1, 10, 50, 100])('[VI2] filters that let %d in 100 through: all results, recall', async (percent) => {
    const [exact, index] = [await truth(), await build(shuffled)];
    await using(exact, () =>
      using(index, () => {
        const has = share(percent);
        for (const filter of [{ has }, known(has), { has, size: known(has).size }]) {
          let found = 0;
          for (const vector of queries) {
            const hits = index.search({ vector, k: 10, filter });
            expect(hits.length).toBe(10);
            expect(hits.every(({ key }) => has(key))).toBe(true);
            const best = new Set(keysOf(exact.search({ vector, k: 10, filter })));
            found += hits.filter(({ key }) => best.has(key)).length;
          }
          expect(found).toBe(percent === 100 ? 990 : 1000);
        }
      }),
    );
  });

  test('[VI2] a filter that lets only the farthest through, and one that lies about its size', async () => {
    const [exact, index] = [await truth(), await build(shuffled)];
    await using(exact, () =>
      using(index, () => {
        const vector = queries[5]!;
        const far = new Set(keysOf(exact.search({ vector, k: 3000 })).slice(-1500));
        const filter = { has: (key: number) => far.has(key), size: 1500 };
        expect(index.search({ vector, k: 10, filter })).toEqual(exact.search({ vector, k: 10, filter }));
        const liar = { has: (key: number) => key === 7, size: 2900 };
        expect(keysOf(index.search({ vector, k: 10, filter: liar }))).toEqual([7]);
        expect(index.search({ vector, k: 10, filter: { has: () => false } })).toEqual([]);
      }),
    );
  });

  test('[VI5] a thousand equal vectors neither hide others nor each other', async () => {
    const index = await build(shuffled.slice(0, 1000));
    await using(index, async () => {
      for (const key of range(1000, 5001)) await index.add(key, queries[0]!);
      expect(keysOf(index.search({ vector: queries[0]!, k: 5 }))).toEqual([5001, 5002, 5003, 5004, 5005]);
      expect(index.search({ vector: queries[0]!, k: 1005 }).length).toBe(1005);
      for (const i of range(1000, 0)) expect(index.search({ vector: vectors[i]!, k: 1 })[0]!.key).toBe(i + 1);
      for (const key of range(999, 5001)) expect(index.delete(key)).toBe(true);
      expect(keysOf(index.search({ vector: queries[0]!, k: 1 }))).toEqual([6000]);
      expect(index.memoryBytes).toBeLessThan(1e7);
    });
  });

  test('[VI13] a growing set becomes a graph bit by bit', async () => {
    const index = await createVectorIndex({ ...small, graphFrom: 500 });
    const exact = await createExactIndex({ kernels: wasm, dim });
    await using(exact, () =>
      using(index, async () => {
        for (const i of range(700, 0)) {
          await index.add(i + 1, vectors[i]!);
          await exact.add(i + 1, vectors[i]!);
          expect(index.hasGraph).toBe(i >= 500);
          if (i % 20 === 0) expect(countFound(exact, index, queries.slice(0, 5))).toBe(Math.min(50, 5 * (i + 1)));
        }
      }),
    );
  });

  test('[VI20] [VI21] growth keeps everything; an add with room has happened at once', async () => {
    const index = await createHnswIndex({ ...small, capacity: 4 });
    await using(index, async () => {
      const all = range(100, 0).map((i) => index.add(i + 1, vectors[i]!));
      expect(index.size).toBe(4);
      await Promise.all(all);
      expect(index.size).toBe(100);
      for (const i of range(100, 0)) expect(keysOf(index.search({ vector: vectors[i]!, k: 1 }))).toEqual([i + 1]);
      index.checkIntegrity();
    });
    const limited = { ...wasm, maxArenaBytes: 2 ** 26 + 2 ** 23 };
    const tight = await createExactIndex({ kernels: limited, dim: 1024 });
    await using(tight, async () => {
      const many = new Float32Array(4000 * 1024).fill(1);
      await expect(tight.addMany(range(4000), many)).rejects.toMatchObject({ code: 'out_of_memory' });
      expect(tight.size).toBe(0);
      await tight.add(1, many.subarray(0, 1024));
      expect(tight.size).toBe(1);
    });
  });
});
