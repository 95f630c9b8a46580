import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import type { KernelPackFactory } from '../../kernels/contract.ts';
import { createReferencePackFactory } from '../../kernels/reference/reference-pack.ts';
import { createKernelFactory } from '../../platform/node/kernels/kernel-factory.ts';
import { normals } from '../../../test/support/random-values.ts';
import { createExactIndex, createVectorIndex } from './create-index.ts';
import { clustered, flat, wasm } from './index-fixture.contract.ts';
import { resolveVectorIndexOptions } from './options.ts';
import type { VectorFilter, VectorIndex } from './types.ts';
import { canNarrow, narrow } from './narrow.ts';
import { roundToBytes, writeVector } from './vector-input.ts';
import { createVectorSpace, type VectorSpace } from './vector-space.ts';
import { LIVE } from './slot-table.ts';

const best = await createKernelFactory('auto', { numThreads: 1, types: [], warn: () => {} });
/** With what each has the time for. */
const packs: readonly (readonly [string, KernelPackFactory, readonly number[], number])[] = [
  ['reference', createReferencePackFactory(), [24], 300],
  ['wasm', wasm, [5, 64, 131], 600],
  [`the best here (${best.name})`, best, [5, 64, 131], 600],
];
const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

/** How vectors may lie: what bytes tell apart well, hardly or not at all. */
const SHAPES: Readonly<Record<string, (count: number, dim: number, seed: number) => Float32Array[]>> = {
  clustered: (count, dim, seed) => clustered(count, dim, seed, 5),
  // Nearer to each other than half a scale: bytes alone would order them by chance.
  'almost equal': (count, dim, seed) => {
    const center = normals(dim, seed);
    return Array.from({ length: count }, (_, i) => normals(dim, seed + i + 1).map((value, d) => center[d]! + 0.003 * value)); // prettier-ignore
  },
  // One value far above the others: their bytes are all 0 or 1.
  peaked: (count, dim, seed) =>
    Array.from({ length: count }, (_, i) => normals(dim, seed + i).map((value, d) => (d === i % 3 ? 40 : value / 5))),
  mixed: (count, dim, seed) => {
    const [some, others] = [clustered(count, dim, seed, 3), SHAPES['peaked']!(count, dim, seed)];
    return some.map((vector, i) => (i % 4 === 0 ? others[i]! : vector));
  },
};

async function withBoth(
  kernels: KernelPackFactory,
  vectors: readonly Float32Array[],
  body: (bytes: VectorIndex, exact: VectorIndex) => Promise<void> | void,
): Promise<void> {
  const dim = vectors[0]!.length;
  const bytes = await createVectorIndex({ kernels, dim, storage: 'int8', graphFrom: 1e6 });
  const exact = await createExactIndex({ kernels, dim });
  try {
    for (const index of [bytes, exact]) await index.addMany(range(vectors.length), flat(vectors));
    await body(bytes, exact);
  } finally {
    await bytes.dispose();
    await exact.dispose();
  }
}

const everyThird: VectorFilter = { has: (key) => key % 3 !== 0 };
const known: VectorFilter = { ...everyThird, size: 400, keys: () => range(600).filter((key) => key % 3 !== 0) };

describe.each(packs)('[VI7] %s', (_, kernels, dims, count) => {
  test.each(Object.keys(SHAPES))('%s vectors: the same keys and scores as without bytes', async (shape) => {
    for (const dim of dims) {
      const vectors = SHAPES[shape]!(count, dim, 3);
      const queries = [...SHAPES[shape]!(3, dim, 91), ...vectors.slice(0, 3), normals(dim, 17)];
      await withBoth(kernels, vectors, (bytes, exact) => {
        for (const vector of queries) {
          for (const k of [1, 8, 37]) {
            expect(bytes.search({ vector, k })).toEqual(exact.search({ vector, k }));
            for (const filter of [everyThird, known]) {
              expect(bytes.search({ vector, k, filter })).toEqual(exact.search({ vector, k, filter }));
            }
          }
        }
      });
    }
  });
});

test('[VI7] finds the nearest to a query that rounds badly to bytes', async () => {
  const dim = 64;
  // All but the first value are less than half a scale: 0 as bytes.
  const vector = Float32Array.from({ length: dim }, (_, d) => (d === 0 ? 40 : 0.15));
  const vectorOf = (first: number, others: number): Float32Array =>
    Float32Array.from({ length: dim }, (_, d) => (d === 0 ? first : others));
  const vectors = range(300).map((i) => (i % 2 === 0 ? vectorOf(1 + i / 1e4, 1) : vectorOf(1.2 + i / 1e4, -1)));
  await withBoth(wasm, vectors, (bytes, exact) => {
    const hits = bytes.search({ vector, k: 8 });
    expect(hits).toEqual(exact.search({ vector, k: 8 }));
    expect(hits.every(({ key }) => key % 2 === 0)).toBe(true);
  });
});

test('[VI7] ignores deleted vectors when it narrows the candidates', async () => {
  const vectors = clustered(600, 24, 8, 4);
  await withBoth(wasm, vectors, (bytes, exact) => {
    const vector = vectors[0]!;
    for (const { key } of exact.search({ vector, k: 200 })) for (const index of [bytes, exact]) index.delete(key);
    expect(bytes.search({ vector, k: 20 })).toEqual(exact.search({ vector, k: 20 }));
    expect(bytes.search({ vector, k: 20 }).length).toBe(20);
  });
});

test('[VI7] twins, deleted and replaced vectors: the same as without bytes', async () => {
  const vectors = clustered(600, 24, 8, 4);
  await withBoth(wasm, vectors, async (bytes, exact) => {
    await fc.assert(
      fc.asyncProperty(fc.nat(1e6), async (seed) => {
        const random = createRandom(seed);
        for (let i = 0; i < 30; i++) {
          const key = 1 + Math.floor(random.next() * 800);
          const like = vectors[Math.floor(random.next() * vectors.length)]!;
          for (const index of [bytes, exact]) {
            if (i % 3 === 0) index.delete(key);
            else await index.add(key, i % 3 === 1 ? like : like.map((value) => value * 2));
          }
        }
        const vector = vectors[seed % vectors.length]!;
        expect(bytes.search({ vector, k: 20 })).toEqual(exact.search({ vector, k: 20 }));
      }),
      { numRuns: 20, seed: 3 },
    );
  });
});

async function spaceOf(vectors: readonly Float32Array[], metric: 'cosine' | 'dot'): Promise<VectorSpace> {
  const dim = vectors[0]!.length;
  const options = resolveVectorIndexOptions({ kernels: wasm, dim, metric, storage: 'int8' });
  const space = await createVectorSpace(options, vectors.length, false);
  vectors.forEach((vector, slot) => {
    const values = space.columns.vectors.subarray(slot * dim, (slot + 1) * dim);
    writeVector(vector, dim, metric, values);
    space.columns.scales[slot] = roundToBytes(values, space.columns.codes.subarray(slot * dim, (slot + 1) * dim));
    space.columns.states[slot] = LIVE;
  });
  writeVector(normals(dim, 5), dim, metric, space.work.query.subarray(0, dim));
  return space;
}

test('of two thousand, few are looked at exactly; those with ids keep their order', async () => {
  const space = await spaceOf(clustered(2000, 256, 4), 'cosine');
  expect(narrow(space, { k: 8, count: 2000, ids: false })).toBe(78);
  const all = [...space.work.ids.subarray(0, 78)];
  expect(all).toEqual(all.toSorted((a, b) => a - b));
  range(1000).forEach((_, i) => (space.work.ids[i] = 1999 - 2 * i));
  const moves: number[][] = [];
  const kept = narrow(space, { k: 8, count: 1000, ids: true }, (from, to) => moves.push([from, to]));
  expect([...space.work.ids.subarray(0, kept)]).toEqual(moves.map(([from]) => 1999 - 2 * from!));
  expect(moves.map(([, to]) => to)).toEqual(range(kept).map((i) => i - 1));
  await space.pack.dispose();
});

test('only where lengths are known, of many, for few', async () => {
  const [cosine, dot] = await Promise.all([spaceOf(clustered(4, 8, 1), 'cosine'), spaceOf(clustered(4, 8, 1), 'dot')]);
  expect(canNarrow(cosine, 'cosine', 256, 32)).toBe(true);
  expect(canNarrow(cosine, 'cosine', 255, 1)).toBe(false);
  expect(canNarrow(cosine, 'cosine', 256, 33)).toBe(false);
  expect(canNarrow(dot, 'dot', 1000, 1)).toBe(false);
  expect(canNarrow({ ...cosine, exactTable: cosine.table }, 'cosine', 1000, 1)).toBe(false);
  await Promise.all([cosine.pack.dispose(), dot.pack.dispose()]);
});
