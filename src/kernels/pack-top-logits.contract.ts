import { describe, expect, test } from 'vitest';
import { createRandom } from '../core/random.ts';
import { TOP_SUM_TOLERANCE } from '../core/top-logits.ts';
import { campaign } from '../../test/support/campaign.ts';
import { normals } from '../../test/support/random-values.ts';
import { type KernelPackFactory, MAX_TOP, TOP_STATS, topScratch } from './contract.ts';
import { expectSameBits, type PackFixture, withSmallPack } from './pack-fixture.contract.ts';

interface Found {
  readonly ids: Int32Array;
  readonly values: Float32Array;
  readonly stats: Float32Array;
}

async function findTop({ pack, put, output }: PackFixture, rows: Float32Array[], k: number): Promise<Found> {
  const [numRows, vocabSize] = [rows.length, rows[0]!.length];
  const logits = put(rows.flatMap((row) => Array.from(row)));
  const values = output(numRows * k);
  const ids = output(numRows * k);
  const stats = output(numRows * TOP_STATS);
  const scratch = output(numRows * topScratch(vocabSize));
  const places = { values: values.offset, ids: ids.offset, stats: stats.offset, scratch: scratch.offset };
  pack.topLogits({ logits, numRows, vocabSize, k, ...places });
  await scratch.read();
  return {
    ids: new Int32Array((await ids.read()).buffer),
    values: await values.read(),
    stats: await stats.read(),
  };
}

const orders = new WeakMap<Float32Array, Uint32Array>();

/** Ids by descending logit, ties by id; sorted once for all numbers of threads. */
function orderOf(row: Float32Array): Uint32Array {
  let order = orders.get(row);
  if (order === undefined) {
    order = Uint32Array.from(row, (_, id) => id).sort((a, b) => row[b]! - row[a]! || a - b);
    orders.set(row, order);
  }
  return order;
}

/** Compares a result with the k best by sorting; sums in f64. */
function expectTop({ ids, values, stats }: Found, rows: Float32Array[], k: number, what: string): void {
  rows.forEach((row, r) => {
    const best = Array.from(orderOf(row).subarray(0, k));
    expect(Array.from(ids.subarray(r * k, (r + 1) * k)), `${what}, row ${r}`).toEqual(best);
    const bestValues = Float32Array.from(best, (id) => row[id]!);
    expectSameBits(values.slice(r * k, (r + 1) * k), bestValues, `${what}, row ${r}`);
    const [max, sum, numBad] = stats.subarray(r * TOP_STATS, (r + 1) * TOP_STATS);
    expect([max, numBad], what).toEqual([bestValues[0], 0]);
    const exact = row.reduce((total, value) => total + Math.exp(value - max!), 0);
    expect(Math.abs(sum! / exact - 1), `${what}: sum ${sum}, exactly ${exact}`).toBeLessThan(TOP_SUM_TOLERANCE);
  });
}

/** Few distinct values: ties within and across blocks and chunks. */
const coarse = (length: number, seed: number): Float32Array => {
  const random = createRandom(seed);
  return Float32Array.from({ length }, () => Math.floor(random.next() * 5) / 2 - 1);
};
const scaled = (length: number, seed: number, factor: number): Float32Array =>
  normals(length, seed).map((value) => value * factor);

export function describeTopLogits(makeFactory: () => KernelPackFactory): void {
  describe('topLogits', () => {
    const lengths = [...Array.from({ length: 20 }, (_, i) => i + 1), 63, 64, 65, 127, 130, 260, 1000, 4095, 4096, 4097];

    test('finds the best, ties by id, with any number of logits, rows and k', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        for (const length of lengths) {
          const steep = scaled(length, length, 3);
          for (const k of new Set([1, 2, 7, 40, MAX_TOP, length].filter((k) => k <= Math.min(length, MAX_TOP)))) {
            const rows = [steep, coarse(length, k)];
            expectTop(await findTop(fixture, rows, k), rows, k, `${k} of ${length}`);
          }
        }
      });
    });

    test('gives the same bits on any number of threads, alone and in a batch', async () => {
      const rows = [1, 2, 3].map((seed) => scaled(33_001, seed, 4));
      const k = 64;
      let onOne: Found | null = null;
      for (const numThreads of campaign({ short: [1, 2, 3, 8], long: [1, 2, 3, 4, 5, 6, 7, 8] })) {
        const body = async (fixture: PackFixture): Promise<void> => {
          const all = await findTop(fixture, rows, k);
          onOne ??= all;
          expectTop(all, rows, k, `${numThreads} threads`);
          expectSameBits(all.stats, onOne.stats, `${numThreads} threads`);
          const alone = await findTop(fixture, [rows[1]!], k);
          expectSameBits(alone.stats, all.stats.slice(TOP_STATS, 2 * TOP_STATS), 'alone');
          expect(alone.ids).toEqual(all.ids.slice(k, 2 * k));
        };
        await withSmallPack(makeFactory(), body, { numThreads });
      }
    });

    test('sums are correct for flat, steep and shifted rows, without masked logits', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const length = 20_003;
        const masked = scaled(length, 4, 2).fill(-Infinity, 3000, 14_000);
        const oneLeft = new Float32Array(length).fill(-Infinity);
        oneLeft[length - 1] = -7;
        const peaked = scaled(length, 6, 0.5).map((value) => value - 10);
        peaked[17_000] = 1;
        const rows = [
          new Float32Array(length).fill(-3.25),
          masked,
          oneLeft,
          peaked,
          scaled(length, 5, 30),
          scaled(length, 7, 1).map((value) => value + 1e4),
          scaled(length, 8, 1e37),
        ];
        expectTop(await findTop(fixture, rows, 50), rows, 50, 'odd rows');
      });
    });

    test('counts NaN and +Infinity, and reports rows that are all masked', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        for (const length of [1, 5, 64, 70, 4096, 9001]) {
          const masked = new Float32Array(length).fill(-Infinity);
          const badRows = [0, length >> 1, length - 1].map((at) => scaled(length, 1, 1).fill(NaN, at, at + 1));
          const infinite = scaled(length, 2, 1).fill(Infinity, length - 1);
          const allBad = new Float32Array(length).fill(NaN);
          const rows = [masked, ...badRows, infinite, allBad, scaled(length, 3, 1)];
          const { stats } = await findTop(fixture, rows, Math.min(length, 3));
          const counts = rows.map((_, r) => stats[r * TOP_STATS + 2]);
          expect(counts, `${length} logits`).toEqual([0, 1, 1, 1, 1, length, 0]);
          expect(stats[0]).toBe(-Infinity);
        }
      });
    });

    test('rejects k beyond the vocabulary or the limit', async () => {
      await withSmallPack(makeFactory(), async ({ pack, put }) => {
        const at = put([1]);
        const op = { logits: at, numRows: 1, values: at, ids: at, stats: at, scratch: at };
        for (const [k, vocabSize] of [
          [0, 10],
          [11, 10],
          [MAX_TOP + 1, 1000],
        ] as const) {
          expect(() => pack.topLogits({ ...op, k, vocabSize })).toThrowError(
            expect.objectContaining({ code: 'unsupported', message: expect.stringContaining(`got ${k}`) }),
          );
        }
      });
    });
  });
}
