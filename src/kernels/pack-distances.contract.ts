import { describe, expect, test } from 'vitest';
import { createRandom } from '../core/random.ts';
import { normals } from '../../test/support/random-values.ts';
import { type DistancesOp, type KernelPackFactory, MAX_VECTOR_DIM } from './contract.ts';
import {
  EPSILON,
  expectClose,
  expectSameBits,
  norm,
  type PackFixture,
  withSmallPack,
} from './pack-fixture.contract.ts';

type Metric = DistancesOp['metric'];
const metrics: Metric[] = ['dot', 'l2'];
/** Every remainder of the widest registers, and some real sizes. */
const dims = [...Array.from({ length: 70 }, (_, i) => i + 1), 127, 128, 191, 256, 300, 384, 768];

const bytesOf = (length: number, seed: number): Int8Array => {
  const random = createRandom(seed);
  return Int8Array.from({ length }, () => Math.floor(random.next() * 256) - 128);
};

interface Search {
  readonly query: Float32Array;
  readonly vectors: Float32Array | Int8Array;
  readonly scales?: Float32Array;
  readonly ids?: readonly number[];
  readonly metric: Metric;
}

function search({ pack, put, putInts, output }: PackFixture, input: Search): Promise<Float32Array> {
  const { query, vectors, scales, ids, metric } = input;
  const dim = query.length;
  const numVectors = ids?.length ?? vectors.length / dim;
  const vectorsAt = pack.arena.allocate(vectors.byteLength, 'vectors');
  const bytes = new Uint8Array(vectors.buffer, vectors.byteOffset, vectors.byteLength);
  pack.arena.u8(vectorsAt, vectors.byteLength).set(bytes);
  const out = output(numVectors);
  pack.distances({
    query: put(query),
    vectors: vectorsAt,
    numVectors,
    dim,
    format: scales === undefined ? 'f32' : 'int8',
    scales: scales === undefined ? null : put(scales),
    ids: ids === undefined ? null : putInts(ids),
    metric,
    out: out.offset,
  });
  return out.read();
}

const plainly = (metric: Metric, x: ArrayLike<number>, y: ArrayLike<number>): number =>
  Array.from(x).reduce((sum, value, i) => sum + (metric === 'dot' ? value * y[i]! : (value - y[i]!) ** 2), 0);

/** The query's bytes and their scale, as the contract defines them. */
function roundPlainly(query: Float32Array): { q: number[]; scale: number } {
  const scale = Math.fround(Math.max(...query.map(Math.abs)) / 127);
  const q = Array.from(query, (value) => {
    const exact = Math.fround(value / scale);
    const even = 2 * Math.round(exact / 2);
    return Math.abs(exact - even) === 0.5 ? even : Math.round(exact);
  });
  return { q, scale };
}

export function describeDistances(makeFactory: () => KernelPackFactory): void {
  describe('distances', () => {
    test.each(metrics)('%s of f32 vectors is correct at every length', async (metric) => {
      await withSmallPack(makeFactory(), async (fixture) => {
        for (const dim of dims) {
          const query = normals(dim, dim);
          const vectors = normals(5 * dim, dim + 1);
          const result = await search(fixture, { query, vectors, metric });
          const rows = Array.from({ length: 5 }, (_, v) => vectors.subarray(v * dim, (v + 1) * dim));
          const expected = rows.map((row) => plainly(metric, query, row));
          const size = (v: number): number =>
            metric === 'dot' ? norm(query) * norm(rows[v]!) : (norm(query) + norm(rows[v]!)) ** 2;
          expectClose(result, expected, (v) => 4 * EPSILON * size(v), `${dim} values`);
        }
      });
    });

    test.each(metrics)('%s of int8 vectors is exact for the rounded numbers, at every length', async (metric) => {
      await withSmallPack(makeFactory(), async (fixture) => {
        for (const dim of dims) {
          const query = normals(dim, dim, 3);
          const vectors = bytesOf(5 * dim, dim);
          vectors.subarray(0, dim).fill(-128); // the byte without a positive counterpart
          const scales = normals(5, dim).map((value) => Math.abs(value) / 100);
          const result = await search(fixture, { query, vectors, scales, metric });
          const { q, scale } = roundPlainly(query);
          const expected = Array.from(scales, (vectorScale, v) => {
            const row = vectors.subarray(v * dim, (v + 1) * dim);
            if (metric === 'dot')
              return Math.fround(Math.fround(plainly('dot', q, row)) * Math.fround(scale * vectorScale));
            return plainly('l2', q.map((value) => value * scale), Array.from(row, (value) => value * vectorScale)); // prettier-ignore
          });
          const tolerance = (v: number): number => 2 * EPSILON * Math.abs(expected[v]!);
          expectClose(result, expected, tolerance, `${dim} bytes`);
        }
      });
    });

    test('the longest vectors do not overflow, and the rounded query has distance 0 to itself', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const query = new Float32Array(MAX_VECTOR_DIM).fill(127);
        const vectors = new Int8Array(2 * MAX_VECTOR_DIM).fill(127);
        vectors.fill(-128, MAX_VECTOR_DIM);
        const input = { query, vectors, scales: Float32Array.of(1, 1) };
        const dots = [127 * 127 * MAX_VECTOR_DIM, -127 * 128 * MAX_VECTOR_DIM];
        expect(await search(fixture, { ...input, metric: 'dot' })).toEqual(Float32Array.from(dots));
        const squares = [0, 255 * 255 * MAX_VECTOR_DIM];
        expect(await search(fixture, { ...input, metric: 'l2' })).toEqual(Float32Array.from(squares));
      });
    });

    test.each(['f32', 'int8'] as const)(
      '%s: ids select vectors in any order, with repeats; results equal those of a full scan',
      async (format) => {
        await withSmallPack(makeFactory(), async (fixture) => {
          const [dim, numVectors] = [100, 300];
          const query = normals(dim, 1);
          const vectors = format === 'f32' ? normals(numVectors * dim, 2) : bytesOf(numVectors * dim, 2);
          const scales = format === 'f32' ? {} : { scales: normals(numVectors, 3) };
          const ids = [299, 0, 17, 17, 255, 64, 63, 1];
          for (const metric of metrics) {
            const all = await search(fixture, { query, vectors, ...scales, metric });
            const some = await search(fixture, { query, vectors, ...scales, metric, ids });
            expectSameBits(
              some,
              Float32Array.from(ids, (id) => all[id]!),
              'by ids',
            );
            const one = await search(fixture, { query, vectors, ...scales, metric, ids: [42] });
            expectSameBits(one, all.slice(42, 43), 'alone');
            expect(await search(fixture, { query, vectors, ...scales, metric, ids: [] })).toEqual(new Float32Array(0));
          }
        });
      },
    );

    test('zeros give zeros, a NaN stays in its vector, and a query that is not finite gives NaN', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const dim = 40;
        const scales = Float32Array.of(0.5, NaN, 0.25);
        const vectors = bytesOf(3 * dim, 1);
        const zero = new Float32Array(dim);
        const dots = await search(fixture, { query: zero, vectors, scales, metric: 'dot' });
        expect(Array.from(dots, Math.abs)).toEqual([0, NaN, 0]);
        for (const bad of [NaN, Infinity, -Infinity]) {
          const query = normals(dim, 2);
          query[33] = bad;
          for (const metric of metrics) {
            const result = await search(fixture, { query, vectors, scales, metric });
            expect(Array.from(result)).toEqual([NaN, NaN, NaN]);
          }
        }
        const floats = normals(2 * dim, 3);
        floats[dim + 17] = NaN;
        for (const metric of metrics) {
          const result = await search(fixture, { query: normals(dim, 4), vectors: floats, metric });
          expect(Array.from(result, Number.isNaN)).toEqual([false, true]);
        }
        // So small that the scale keeps one bit or none: nothing may overflow.
        const ones = new Int8Array(dim).fill(1);
        for (const tiny of [1e-45, 1e-44, 2e-43, 1e-38].flatMap((value) => [value, -value])) {
          const query = new Float32Array(dim).fill(tiny);
          const [dot] = await search(fixture, { query, vectors: ones, scales: Float32Array.of(1), metric: 'dot' });
          expect(dot! * Math.sign(tiny)).toBeGreaterThanOrEqual(0);
        }
      });
    });

    test('rejects empty and too long vectors, and int8 vectors without scales', async () => {
      await withSmallPack(makeFactory(), async ({ pack, put }) => {
        const at = put([1]);
        const op = { query: at, vectors: at, numVectors: 1, ids: null, metric: 'dot' as const, out: at };
        for (const dim of [0, MAX_VECTOR_DIM + 1]) {
          expect(() => pack.distances({ ...op, dim, format: 'f32', scales: null })).toThrowError(
            expect.objectContaining({ code: 'unsupported', message: expect.stringContaining(`got ${dim}`) }),
          );
        }
        expect(() => pack.distances({ ...op, dim: 1, format: 'int8', scales: null })).toThrowError(/without scales/);
      });
    });
  });
}
