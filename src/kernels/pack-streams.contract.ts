import { expect, test } from 'vitest';
import { normals } from '../../test/support/random-values.ts';
import type { KernelPackFactory } from './contract.ts';
import { EPSILON, expectClose, expectSameBits, withSmallPack } from './pack-fixture.contract.ts';

const widths = [2, 3, 4, 5, 7, 8, 9, 33, 257];

export function describeStreams(makeFactory: () => KernelPackFactory): void {
  test('mixStreams equals its definition at every width, and for each row alone', async () => {
    await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
      for (const dim of widths) {
        for (const [numOut, numIn, numRows, shift] of [
          [4, 4, 5, 0],
          [4, 1, 3, 1],
          [1, 3, 1, -0.5],
          [2, 2, 0, 0],
        ] as const) {
          const [base, x] = [normals(numOut * numRows * dim, dim), normals(numIn * numRows * dim, dim + 1)];
          const coefficients = normals(numRows * numOut * numIn, dim + 2);
          const sizes = { shift, numOut, numIn, dim };
          const out = output(base.length);
          const inPlace = output(base.length, base);
          const inputs = { x: put(x), coefficients: put(coefficients) };
          pack.mixStreams({ base: put(base), ...inputs, ...sizes, numRows, out: out.offset });
          pack.mixStreams({ base: inPlace.offset, ...inputs, ...sizes, numRows, out: inPlace.offset });
          const alone = Array.from({ length: numRows }, (_, t) => {
            const rowsOf = (streams: Float32Array, count: number): Float32Array =>
              Float32Array.from({ length: count * dim }, (_, k) => {
                const [stream, c] = [Math.floor(k / dim), k % dim];
                return streams[(stream * numRows + t) * dim + c]!;
              });
            const row = output(numOut * dim);
            const own = put(coefficients.slice(t * numOut * numIn, (t + 1) * numOut * numIn));
            const [baseRow, xRow] = [put(rowsOf(base, numOut)), put(rowsOf(x, numIn))];
            pack.mixStreams({ base: baseRow, x: xRow, coefficients: own, ...sizes, numRows: 1, out: row.offset });
            return row;
          });
          const expected = Array.from(base, (value, k) => {
            const [i, t, c] = [Math.floor(k / dim / numRows), Math.floor(k / dim) % numRows, k % dim];
            let sum = value;
            for (let j = 0; j < numIn; j++) {
              sum += (coefficients[(t * numOut + i) * numIn + j]! + shift) * x[(j * numRows + t) * dim + c]!;
            }
            return sum;
          });
          const result = await out.read();
          expectClose(result, expected, () => 64 * EPSILON, `${numOut} of ${numIn} streams of ${dim}`);
          expectSameBits(await inPlace.read(), result, `${numOut} of ${numIn} streams of ${dim} in place`);
          for (const [t, row] of alone.entries()) {
            const own = Float32Array.from({ length: numOut * dim }, (_, k) => {
              return result[(Math.floor(k / dim) * numRows + t) * dim + (k % dim)]!;
            });
            expectSameBits(await row.read(), own, `row ${t} of ${dim}`);
          }
        }
      }
    });
  });

  test('matchLengths gives rows the lengths of others, and leaves zeros', async () => {
    await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
      for (const dim of widths) {
        const numRows = 4;
        const [values, target] = [normals(numRows * dim, dim, 3), normals(numRows * dim, dim + 9, 0.2)];
        values.fill(0, dim, 2 * dim);
        const x = output(values.length, values);
        pack.matchLengths({ x: x.offset, target: put(target), numRows, dim });
        const length = (all: Float32Array, r: number): number => Math.hypot(...all.subarray(r * dim, (r + 1) * dim));
        const expected = Array.from(values, (value, k) => {
          const r = Math.floor(k / dim);
          return r === 1 ? 0 : (value * length(target, r)) / length(values, r);
        });
        expectClose(await x.read(), expected, (i) => 8 * EPSILON * Math.abs(expected[i]!), `rows of ${dim}`);
      }
    });
  });

  test('sparsify keeps the excess over the mean and some deviations of a sample', async () => {
    await withSmallPack(makeFactory(), async ({ pack, output }) => {
      for (const dim of widths) {
        for (const threshold of [1.6448533535003662, 0.5, 0]) {
          const numRows = 3;
          const values = normals(numRows * dim, dim, 2).map((value) => value + 0.7);
          const x = output(values.length, values);
          pack.sparsify({ x: x.offset, numRows, dim, threshold });
          const expected = Array.from({ length: numRows }, (_, r) => {
            const row = Array.from(values.subarray(r * dim, (r + 1) * dim));
            const mean = row.reduce((sum, value) => sum + value, 0) / dim;
            const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (dim - 1);
            return row.map((value) => Math.max(0, value - mean - threshold * Math.sqrt(variance)));
          }).flat();
          const result = await x.read();
          expectClose(result, expected, () => 32 * EPSILON, `rows of ${dim} above ${threshold}`);
          if (dim > 30) expect(result.some((value) => value === 0) && result.some((value) => value > 0)).toBe(true);
        }
      }
    });
  });
}
