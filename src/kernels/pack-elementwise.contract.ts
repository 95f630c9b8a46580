import { expect, test } from 'vitest';
import { normals } from '../../test/support/random-values.ts';
import { floatToHalf, halfToFloat } from '../core/half.ts';
import { quantFormats } from '../quant/index.ts';
import type { KernelPackFactory } from './contract.ts';
import {
  allTypes,
  EPSILON,
  expectClose,
  expectSameBits,
  norm,
  randomMatrix,
  withSmallPack,
} from './pack-fixture.contract.ts';

/** Every length up to two steps of four unrolled four-lane vectors, and odd ones beyond. */
const lengths = [...Array.from({ length: 35 }, (_, i) => i), 63, 64, 65, 257, 4099];
const wideValues = (length: number, seed: number): Float32Array => {
  const values = normals(length, seed, 6);
  // Both sides of the overflow and underflow of exp, and zero.
  [0, -0, 1e-8, -1e-8, 30, -30, 88.5, -88.5, 120, -120, 1000, -1000].forEach((value, i) => {
    if (i * 3 < length) values[i * 3] = value;
  });
  return values;
};

export function describeElementwise(makeFactory: () => KernelPackFactory): void {
  test.each(allTypes)('gatherRows reads rows of %s in any order and scales them', async (type) => {
    const { blockSize } = quantFormats[type];
    const ids = [6, 0, 3, 3, 1];
    await withSmallPack(makeFactory(), async ({ pack, putInts, output, matrix }) => {
      for (const numCols of blockSize === 1 ? [1, 2, 3, 7, 16, 33] : [blockSize, 3 * blockSize]) {
        const { bytes, values } = randomMatrix(type, 7, numCols, numCols);
        const table = matrix(type, 7, numCols, bytes);
        for (const scale of [1, Math.sqrt(48)]) {
          for (const numRows of [0, 1, ids.length]) {
            const out = output(numRows * numCols);
            pack.gatherRows({ table, ids: putInts(ids), out: out.offset, numRows, scale });
            const expected = ids
              .slice(0, numRows)
              .flatMap((id) => Array.from(values.subarray(id * numCols, (id + 1) * numCols)));
            const peak = Math.max(...expected.map(Math.abs));
            expectClose(
              await out.read(),
              expected.map((value) => value * scale),
              () => 16 * EPSILON * peak * scale,
              `${type} of ${numCols}`,
            );
          }
        }
      }
    });
  });

  test('rmsNorm divides by the root mean square at every width', async () => {
    await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
      for (const dim of lengths.slice(1)) {
        const numRows = 3;
        const x = normals(numRows * dim, dim);
        x.fill(0, dim, 2 * dim); // a row of zeros stays zeros
        const weight = normals(dim, dim + 1);
        const epsilon = 1e-5;
        const meanSquares = Array.from({ length: numRows }, (_, r) => norm(x, r * dim, (r + 1) * dim) ** 2 / dim);
        const expected = Float64Array.from(x, (value, i) => {
          return (value / Math.sqrt(meanSquares[Math.floor(i / dim)]! + epsilon)) * weight[i % dim]!;
        });
        const out = output(numRows * dim);
        const inPlace = output(numRows * dim, x);
        const input = put(x);
        const op = { weight: put(weight), numRows, dim, epsilon };
        pack.rmsNorm({ ...op, x: input, out: out.offset });
        pack.rmsNorm({ ...op, x: inPlace.offset, out: inPlace.offset });
        const result = await out.read();
        expectClose(result, expected, (i) => (8 + Math.sqrt(dim)) * EPSILON * Math.abs(expected[i]!), `dim ${dim}`);
        expectSameBits(await inPlace.read(), result, 'in place');
        const alone = output(dim);
        pack.rmsNorm({ ...op, x: input + 2 * dim * 4, out: alone.offset, numRows: 1 });
        expectSameBits(await alone.read(), result.slice(2 * dim), 'alone');
      }
    });
  });

  test.each(['adjacent', 'halves'] as const)(
    'rope rotates %s pairs and leaves other values of the head unchanged',
    async (pairing) => {
      await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
        for (const [headDim, rotaryDim] of [
          [2, 2],
          [16, 16],
          [64, 32],
          [80, 80],
          [96, 2],
          [128, 96],
        ] as const) {
          for (const numHeads of [1, 3]) {
            const numTokens = 3;
            const x = normals(numTokens * numHeads * headDim, headDim);
            const cosSin = normals(numTokens * rotaryDim, rotaryDim); // not real angles: any 2x2 matrix must be applied
            const expected = Float64Array.from(x);
            const sizes = new Float64Array(x.length);
            for (let row = 0; row < numTokens * numHeads; row++) {
              for (let pair = 0; pair < rotaryDim / 2; pair++) {
                const i = row * headDim + (pairing === 'adjacent' ? 2 * pair : pair);
                const j = pairing === 'adjacent' ? i + 1 : i + rotaryDim / 2;
                const at = Math.floor(row / numHeads) * rotaryDim + 2 * pair;
                const [cos, sin] = [cosSin[at]!, cosSin[at + 1]!];
                expected[i] = x[i]! * cos - x[j]! * sin;
                expected[j] = x[i]! * sin + x[j]! * cos;
                sizes[i] = sizes[j] = (Math.abs(cos) + Math.abs(sin)) * (Math.abs(x[i]!) + Math.abs(x[j]!));
              }
            }
            const out = output(x.length, x);
            pack.rope({ x: out.offset, cosSin: put(cosSin), numTokens, numHeads, headDim, rotaryDim, pairing });
            expectClose(await out.read(), expected, (i) => 2 * EPSILON * sizes[i]!, `${headDim}/${rotaryDim}`);
          }
        }
      });
    },
  );

  const activations = {
    silu: (x: number) => x / (1 + Math.exp(-x)),
    gelu: (value: number) => {
      if (Math.abs(value) >= 10) return Math.max(0, value);
      const x = halfToFloat(floatToHalf(value));
      return halfToFloat(floatToHalf(0.5 * x * (1 + Math.tanh(0.7978845608028654 * (x + 0.044715 * x ** 3)))));
    },
  };
  test.each(['silu', 'gelu'] as const)(
    'gatedActivation %s is correct at every length, also in place',
    async (activation) => {
      await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
        for (const count of lengths) {
          const gate = wideValues(count, count);
          const up = normals(count, count + 1);
          const out = output(count);
          const inPlace = output(count, gate);
          const upOffset = put(up);
          pack.gatedActivation({ gate: put(gate), up: upOffset, out: out.offset, count, activation });
          pack.gatedActivation({ gate: inPlace.offset, up: upOffset, out: inPlace.offset, count, activation });
          const expected = Float64Array.from(gate, (value, i) => activations[activation](value) * up[i]!);
          const result = await out.read();
          // A gelu between two halves may be rounded to either: one half step, 2^-11 of the value.
          const step = activation === 'gelu' ? 2 ** -10 : 0;
          const tolerance = (i: number): number =>
            16 * EPSILON * Math.max(1, Math.abs(gate[i]!)) * Math.abs(up[i]!) + step * Math.abs(expected[i]!);
          expectClose(result, expected, tolerance, `${activation} of ${count}`);
          expectSameBits(await inPlace.read(), result, 'in place');
        }
      });
    },
  );

  test('gelu by tanh is the gated one with a factor of 1, bit for bit at every length', async () => {
    await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
      for (const count of lengths) {
        const x = wideValues(count, count);
        const [alone, gated] = [output(count, x), output(count)];
        const ones = put(new Float32Array(count).fill(1));
        pack.gelu({ x: alone.offset, count, formula: 'tanh' });
        pack.gatedActivation({ gate: put(x), up: ones, out: gated.offset, count, activation: 'gelu' });
        expectSameBits(await alone.read(), await gated.read(), `${count} values`);
      }
    });
  });

  test('add, scale and softcap are correct at every length', async () => {
    await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
      for (const count of lengths) {
        const [x, y] = [wideValues(count, count), normals(count, count + 1)];
        const sum = output(count);
        const onto = output(count, x);
        const offsetY = put(y);
        pack.add({ x: put(x), y: offsetY, out: sum.offset, count });
        pack.add({ x: onto.offset, y: offsetY, out: onto.offset, count });
        expectSameBits(
          await sum.read(),
          x.map((value, i) => value + y[i]!),
          `add ${count}`,
        );
        expectSameBits(await onto.read(), await sum.read(), `add ${count} in place`);

        const scaled = output(count, x);
        pack.scale({ x: scaled.offset, count, factor: 0.3 });
        expectClose(
          await scaled.read(),
          x.map((v) => v * 0.3),
          (i) => EPSILON * Math.abs(x[i]!),
          `scale ${count}`,
        );

        const capped = output(count, x);
        pack.softcap({ x: capped.offset, count, cap: 30 });
        const expected = Float64Array.from(x, (value) => 30 * Math.tanh(value / 30));
        expectClose(await capped.read(), expected, () => 16 * EPSILON * 30, `softcap ${count}`);
      }
    });
  });

  test('copyRows selects rows in any order, with repeats', async () => {
    const rows = [4, 0, 2, 2, 1];
    await withSmallPack(makeFactory(), async ({ pack, put, putInts, output }) => {
      for (const dim of [1, 2, 3, 5, 15, 16, 33]) {
        const x = normals(5 * dim, dim);
        for (const numRows of [0, 1, rows.length]) {
          const out = output(numRows * dim);
          pack.copyRows({ x: put(x), rows: putInts(rows), out: out.offset, numRows, dim });
          const expected = rows.slice(0, numRows).flatMap((row) => Array.from(x.subarray(row * dim, (row + 1) * dim)));
          expect([...(await out.read())]).toEqual(expected);
        }
      }
    });
  });

  test('copyBlocks moves parts of rows, and heads before tokens and back', async () => {
    await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
      for (const [numTokens, numHeads, width, gap] of [
        [1, 1, 1, 0],
        [3, 2, 5, 3],
        [5, 7, 16, 1],
        [40, 3, 33, 8],
      ] as const) {
        const rowOf = numHeads * (width + gap);
        const x = normals(numTokens * rowOf, width);
        const heads = output(numTokens * numHeads * width);
        const tokens = { outer: rowOf, inner: width + gap };
        const transposed = { outer: width, inner: numTokens * width };
        const count = { numOuter: numTokens, numInner: numHeads, width };
        pack.copyBlocks({ x: put(x), out: heads.offset, ...count, from: tokens, to: transposed });
        const back = output(numTokens * rowOf, new Float32Array(numTokens * rowOf).fill(9));
        pack.copyBlocks({ x: heads.offset, out: back.offset + gap * 4, ...count, from: transposed, to: tokens });
        const moved = await heads.read();
        const result = await back.read();
        for (let t = 0; t < numTokens; t++) {
          for (let h = 0; h < numHeads; h++) {
            const at = t * rowOf + h * (width + gap);
            const block = [...x.subarray(at, at + width)];
            expect([...moved.subarray((h * numTokens + t) * width, (h * numTokens + t + 1) * width)]).toEqual(block);
            expect([...result.subarray(at, at + width + gap)]).toEqual([...Array<number>(gap).fill(9), ...block]);
          }
        }
      }
    });
  });
}
