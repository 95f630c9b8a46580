import { describe, expect, test } from 'vitest';
import { normals } from '../../test/support/random-values.ts';
import { expectPlain, makeRegion, runStep, sequencesOf, type Shape } from './attention-fixture.contract.ts';
import type { KernelPackFactory } from './contract.ts';
import { EPSILON, expectClose, expectSameBits, withSmallPack, type PackFixture } from './pack-fixture.contract.ts';

const lengths = [...Array.from({ length: 35 }, (_, i) => i), 63, 64, 65, 257, 4099];

/** Φ(x) to ten digits by integrating the density: independent of all packs. */
function normalDistribution(x: number): number {
  const [numSteps, end] = [2000, Math.min(12, Math.abs(x))];
  const width = end / numSteps;
  let sum = 0;
  for (let i = 0; i <= numSteps; i++) {
    const weight = i === 0 || i === numSteps ? 1 : i % 2 === 1 ? 4 : 2; // Simpson's rule
    sum += weight * Math.exp(-((i * width) ** 2) / 2);
  }
  const half = (sum * width) / 3 / Math.sqrt(2 * Math.PI);
  return x > 0 ? 0.5 + half : 0.5 - half;
}

const plain: Shape = { numHeads: 4, numKvHeads: 4, headDim: 32, window: 0, softcap: 0, seesAll: true };
const shapes: Shape[] = [
  plain,
  { ...plain, headDim: 64, precision: 'f32' },
  { ...plain, numHeads: 6, numKvHeads: 2, headDim: 20 },
  { ...plain, numHeads: 3, numKvHeads: 3, headDim: 80, softcap: 3 },
];

/** Operations that only encoders need. */
export function describeEncoderOps(makeFactory: () => KernelPackFactory): void {
  test('layerNorm centers, divides by the deviation and shifts at every width', async () => {
    await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
      for (const dim of lengths.slice(1)) {
        const numRows = 11; // more than one chunk of any pack
        const x = normals(numRows * dim, dim).map((value) => value + 3);
        x.fill(2, dim, 2 * dim); // a row without deviation becomes the bias
        const [weight, bias] = [normals(dim, dim + 1), normals(dim, dim + 2)];
        const epsilon = 1e-5;
        const expected = Array.from({ length: numRows }, (_, r) => {
          const row = x.subarray(r * dim, (r + 1) * dim);
          const mean = row.reduce((sum, v) => sum + v, 0) / dim;
          const variance = row.reduce((sum, v) => sum + (v - mean) ** 2, 0) / dim;
          return Array.from(row, (v, i) => ((v - mean) / Math.sqrt(variance + epsilon)) * weight[i]! + bias[i]!);
        }).flat();
        const [out, inPlace] = [output(numRows * dim), output(numRows * dim, x)];
        const input = put(x);
        const op = { weight: put(weight), bias: put(bias), numRows, dim, epsilon };
        pack.layerNorm({ ...op, x: input, out: out.offset });
        pack.layerNorm({ ...op, x: inPlace.offset, out: inPlace.offset });
        const result = await out.read();
        // Centering cancels leading digits of the mean: 3 of 4, divided by the deviation; 1/√epsilon at most.
        const tolerance = (i: number): number => 64 * EPSILON * (1 + Math.abs(expected[i]!)) * (dim < 4 ? 316 : 4);
        expectClose(result, expected, tolerance, `dim ${dim}`);
        expectSameBits(await inPlace.read(), result, 'in place');
        const alone = output(dim);
        pack.layerNorm({ ...op, x: input + 9 * dim * 4, out: alone.offset, numRows: 1 });
        expectSameBits(await alone.read(), result.slice(9 * dim, 10 * dim), 'alone');
      }
    });
  });

  test('layerNorm keeps values that cannot be normalized visible', async () => {
    await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
      for (const bad of [NaN, Infinity, 3e38]) {
        const x = normals(16, 1);
        x.set([bad, -bad], 3);
        const out = output(16);
        const [weight, bias] = [put(normals(16, 2)), put(normals(16, 3))];
        pack.layerNorm({ x: put(x), weight, bias, out: out.offset, numRows: 1, dim: 16, epsilon: 1e-5 });
        expect(
          (await out.read()).every((value) => Number.isNaN(value)),
          `${bad}`,
        ).toBe(true);
      }
    });
  });

  test('gelu is x times the normal distribution at every length and position', async () => {
    await withSmallPack(makeFactory(), async ({ pack, output }) => {
      for (const count of lengths) {
        const x = normals(count, count + 7, 3);
        [0, 1e-8, -1e-8, 1e-3, -1, -4, -6, 8, -8, 40, -40].forEach((value, i) => {
          if (i * 3 < count) x[i * 3] = value;
        });
        const out = output(count, x);
        pack.gelu({ x: out.offset, count, formula: 'erf' });
        const result = await out.read();
        const expected = Array.from(x, (value) => value * normalDistribution(value));
        expectClose(result, expected, (i) => 3 * EPSILON * Math.abs(x[i]!), `gelu of ${count}`);
        if (count < 7) continue;
        const shifted = output(count - 5, x.slice(5));
        pack.gelu({ x: shifted.offset, count: count - 5, formula: 'erf' });
        expectSameBits(await shifted.read(), result.slice(5), `gelu of the last ${count - 5}`);
      }
    });
  });

  test('gelu of NaN is NaN', async () => {
    await withSmallPack(makeFactory(), async ({ pack, output }) => {
      for (const formula of ['erf', 'tanh'] as const) {
        const out = output(5, Float32Array.of(1, NaN, 1, 1, NaN));
        pack.gelu({ x: out.offset, count: 5, formula });
        const isNaN = Array.from(await out.read(), (value) => Number.isNaN(value));
        expect(isNaN, formula).toEqual([false, true, false, false, true]);
      }
    });
  });

  describe('bidirectional attention', () => {
    test.each(shapes)('equals plain softmax attention over the whole sequence: %o', async (shape) => {
      const body = async (fixture: PackFixture): Promise<void> => {
        const kv = makeRegion(fixture, shape, 24);
        const parts = sequencesOf(shape, [1, 16, 17, 37, 130], 24).map((sequence) => ({
          sequence,
          start: 0,
          end: sequence.length,
        }));
        const batched = await runStep(fixture, kv, shape, parts);
        expectPlain(shape, parts, batched);
        const width = shape.numHeads * shape.headDim;
        let row = 0;
        for (const part of parts) {
          const alone = await runStep(fixture, makeRegion(fixture, shape, 24), shape, [part]);
          expectSameBits(alone, batched.slice(row * width, (row += part.end) * width), `${part.end} tokens alone`);
        }
      };
      await withSmallPack(makeFactory(), body, { arenaBytes: 2 ** 24 });
    });

    test('rejects a window', async () => {
      const shape: Shape = { ...plain, window: 4 };
      await withSmallPack(makeFactory(), async (fixture) => {
        const [sequence] = sequencesOf(plain, [3], 1);
        const step = runStep(fixture, makeRegion(fixture, plain, 1), shape, [
          { sequence: sequence!, start: 0, end: 3 },
        ]);
        await expect(step).rejects.toMatchObject({
          code: 'unsupported',
          message: 'bidirectional attention cannot have a window, got 4',
        });
      });
    });
  });
}
