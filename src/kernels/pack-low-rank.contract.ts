import { describe, expect, test } from 'vitest';
import { normals } from '../../test/support/random-values.ts';
import { type KernelPackFactory, MAX_RANK } from './contract.ts';
import {
  EPSILON,
  expectClose,
  expectSameBits,
  norm,
  type PackFixture,
  withSmallPack,
} from './pack-fixture.contract.ts';

interface Delta {
  readonly numCols: number;
  readonly numRows: number;
  readonly rank: number;
  readonly scale: number;
  readonly a: Float32Array;
  readonly b: Float32Array;
}

const makeDelta = (numCols: number, numRows: number, rank: number): Delta => ({
  numCols,
  numRows,
  rank,
  scale: 0.75 + rank / 8,
  a: normals(rank * numCols, numCols + rank),
  b: normals(numRows * rank, numRows + 2 * rank),
});

/** Adds a delta to the listed rows of `out`, or to all. */
async function run(
  fixture: PackFixture,
  delta: Delta,
  x: Float32Array,
  before: Float32Array,
  rows: readonly number[] | null,
): Promise<Float32Array> {
  const { put, putInts, output } = fixture;
  const numTokens = rows === null ? x.length / delta.numCols : rows.length;
  const out = output(before.length, before);
  const scratch = output(numTokens * delta.rank);
  fixture.pack.lowRankDelta({
    ...delta,
    x: put(x),
    numTokens,
    a: put(delta.a),
    b: put(delta.b),
    rows: rows === null ? null : putInts(rows),
    out: out.offset,
    scratch: scratch.offset,
  });
  await scratch.read(); // checks its canaries, too
  return out.read();
}

function addPlainly({ numCols, numRows, rank, scale, a, b }: Delta, x: Float32Array, before: Float32Array): number[] {
  const inner = Array.from({ length: rank }, (_, r) =>
    x.reduce((sum, value, c) => sum + value * a[r * numCols + c]!, 0),
  );
  return Array.from({ length: numRows }, (_, n) => {
    return before[n]! + scale * inner.reduce((sum, value, r) => sum + value * b[n * rank + r]!, 0);
  });
}

export function describeLowRank(makeFactory: () => KernelPackFactory): void {
  describe('lowRankDelta', () => {
    const shapes = [1, 2, 3, 7, 16, 31, 33, 64, 100].flatMap((numCols, i) =>
      [1, 5, 15, 16, 17, 63, 65, 130].map((numRows, j) => [
        numCols,
        numRows,
        [1, 2, 3, 4, 8, 17, MAX_RANK][(i + j) % 7]!,
      ]),
    ) as [number, number, number][];

    test('adds scale * B (A x) to every token, at every width, height and rank', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        for (const [numCols, numRows, rank] of shapes) {
          const delta = makeDelta(numCols, numRows, rank);
          const numTokens = 1 + ((numCols + numRows) % 3);
          const x = normals(numTokens * numCols, 5);
          const before = normals(numTokens * numRows, 6);
          const result = await run(fixture, delta, x, before, null);
          for (let t = 0; t < numTokens; t++) {
            const token = x.subarray(t * numCols, (t + 1) * numCols);
            const start = before.subarray(t * numRows, (t + 1) * numRows);
            const size = delta.scale * norm(delta.a) * norm(token);
            expectClose(
              result.subarray(t * numRows, (t + 1) * numRows),
              addPlainly(delta, token, start),
              (n) => 4 * EPSILON * (Math.abs(start[n]!) + size * norm(delta.b, n * rank, (n + 1) * rank)),
              `${numRows}x${numCols} of rank ${rank}, token ${t}`,
            );
          }
        }
      });
    });

    test('a row list selects the tokens of an adapter; batched equals alone, bit for bit', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        for (const [numCols, numRows, rank] of [
          [48, 70, 8],
          [33, 16, 3],
          [5, 130, MAX_RANK],
        ] as const) {
          const delta = makeDelta(numCols, numRows, rank);
          const numTokens = 23;
          const x = normals(numTokens * numCols, 7);
          const before = normals(numTokens * numRows, 8);
          const all = await run(fixture, delta, x, before, null);
          const rows = [22, 3, 0, 17, 4, 5];
          const picked = await run(fixture, delta, x, before, rows);
          for (let t = 0; t < numTokens; t++) {
            const [from, to] = [t * numRows, (t + 1) * numRows];
            const expected = rows.includes(t) ? all : before;
            expectSameBits(picked.slice(from, to), expected.slice(from, to), `token ${t} of a list`);
            if (t % 5 !== 0) continue;
            const token = x.subarray(t * numCols, (t + 1) * numCols);
            const alone = await run(fixture, delta, token, before.subarray(from, to), null);
            expectSameBits(alone, all.slice(from, to), `token ${t} alone`);
          }
          expectSameBits(await run(fixture, delta, x, before, []), before, 'no rows');
        }
      });
    });

    test('a NaN stays in its token, and ranks out of range are rejected', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const delta = makeDelta(20, 18, 4);
        const x = normals(3 * 20, 1);
        x[25] = NaN;
        const result = await run(fixture, delta, x, new Float32Array(3 * 18), null);
        for (let i = 0; i < result.length; i++) expect(Number.isNaN(result[i]!)).toBe(Math.floor(i / 18) === 1);
        for (const rank of [0, MAX_RANK + 1]) {
          await expect(run(fixture, { ...delta, rank }, x, new Float32Array(54), null)).rejects.toMatchObject({
            code: 'unsupported',
            message: expect.stringContaining(`got ${rank}`),
          });
        }
      });
    });
  });
}
