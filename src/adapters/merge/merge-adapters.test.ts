import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { randomAdapter, SMALL_BASE } from '../../../test/support/random-adapter.ts';
import { normals } from '../../../test/support/random-values.ts';
import { createRandom } from '../../core/random.ts';
import { createAdapter } from '../create-adapter.ts';
import type { Adapter, LowRankFactors } from '../types.ts';
import { mergeAdapters } from './merge-adapters.ts';
import { refactorDense, refactorProduct } from './refactor.ts';
import { createMatrix, type Matrix, multiply, thinQr, thinSvd, transpose } from './thin-svd.ts';

/** ΔW, value by value. */
function deltaOf({ numRows, numCols, rank, scale, a, b }: LowRankFactors): number[] {
  return Array.from({ length: numRows * numCols }, (_, at) => {
    const [row, col] = [Math.floor(at / numCols), at % numCols];
    let sum = 0;
    for (let r = 0; r < rank; r++) sum += b[row * rank + r]! * a[r * numCols + col]!;
    return scale * sum;
  });
}

const deltasOf = (adapter: Adapter): number[][] => adapter.factors.map(deltaOf);
const sizeOf = (values: readonly number[]): number => Math.hypot(...values);

/** Within the precision of f32 factors. */
function expectDeltas(adapter: Adapter, expected: readonly (readonly number[])[]): void {
  expect(adapter.factors).toHaveLength(expected.length);
  deltasOf(adapter).forEach((delta, i) => {
    const difference = delta.map((value, at) => value - expected[i]![at]!);
    expect(sizeOf(difference)).toBeLessThanOrEqual(1e-6 * sizeOf(expected[i]!));
  });
}

const make = (seed: number, rank = 2) =>
  randomAdapter(SMALL_BASE, { seed, rank, scale: seed, targets: ['attn_q', 'ffn_down'] });
const mix = (sets: readonly (readonly number[][])[], weights: readonly number[]): number[][] =>
  sets[0]!.map((matrix, i) => matrix.map((_, at) => sets.reduce((sum, set, k) => sum + weights[k]! * set[i]![at]!, 0)));

describe('linear methods', () => {
  test("linear is the weighted mean of the adapters' ΔW", async () => {
    const adapters = await Promise.all([make(1), make(2, 3)]);
    const inputs = adapters.map((adapter, i) => ({ adapter, weight: [1, 3][i]! }));
    const { adapter, report } = await mergeAdapters(inputs, { rank: 5 });
    expectDeltas(adapter, mix(adapters.map(deltasOf), [0.25, 0.75]));
    expect(report.matrices.map(({ rank }) => rank)).toEqual([5, 5, 5, 5]);
    for (const { keptEnergy } of report.matrices) expect(keptEnergy).toBeCloseTo(1, 12);
  });

  test('the mean of the factors is not the mean of ΔW', async () => {
    const [one, other] = await Promise.all([make(1), make(2)]);
    const mean = (x: Float32Array, y: Float32Array) => x.map((value, i) => (value + y[i]!) / 2);
    const averaged = one!.factors.map((factors, i) => ({
      ...factors,
      scale: 1.5,
      a: mean(factors.a, other!.factors[i]!.a),
      b: mean(factors.b, other!.factors[i]!.b),
    }));
    const expected = mix([deltasOf(one!), deltasOf(other!)], [0.5, 0.5]);
    expect(() => expectDeltas({ ...one!, factors: averaged }, expected)).toThrow();
  });

  test('task arithmetic adds and subtracts', async () => {
    const adapters = await Promise.all([make(1), make(2)]);
    const inputs = adapters.map((adapter, i) => ({ adapter, weight: [0.5, -2][i]! }));
    const { adapter } = await mergeAdapters(inputs, { method: 'task-arithmetic', rank: 4 });
    expectDeltas(adapter, mix(adapters.map(deltasOf), [0.5, -2]));
    const nothing = await mergeAdapters(
      [
        { adapter: adapters[0]!, weight: 1 },
        { adapter: adapters[0]!, weight: -1 },
      ],
      { method: 'task-arithmetic' },
    );
    for (const delta of deltasOf(nothing.adapter)) expect(sizeOf(delta)).toBeLessThan(1e-6);
  });

  test('slerp follows the arc: the dense formula, and equal lengths at equal angles', async () => {
    const adapters = await Promise.all([make(1), make(2)]);
    const [first, second] = adapters.map(deltasOf) as [number[][], number[][]];
    const t = 0.3;
    const expected = first.map((x, i) => {
      const y = second[i]!;
      const [lx, ly] = [sizeOf(x), sizeOf(y)];
      const angle = Math.acos(x.reduce((sum, value, at) => sum + value * y[at]!, 0) / (lx * ly));
      const length = (1 - t) * lx + t * ly;
      return x.map((value, at) => {
        const [ux, uy] = [value / lx, y[at]! / ly];
        return (length * (Math.sin((1 - t) * angle) * ux + Math.sin(t * angle) * uy)) / Math.sin(angle);
      });
    });
    const inputs = adapters.map((adapter, i) => ({ adapter, weight: [0.7, 0.3][i]! }));
    const { adapter } = await mergeAdapters(inputs, { method: 'slerp', rank: 4 });
    expectDeltas(adapter, expected);
    // Half way between two of equal length a straight line would be shorter.
    const linear = await mergeAdapters(inputs, { rank: 4 });
    deltasOf(adapter).forEach((delta, i) => {
      expect(sizeOf(delta)).toBeGreaterThan(1.05 * sizeOf(deltasOf(linear.adapter)[i]!));
    });
  });

  test('slerp of an adapter with itself or its opposite is linear', async () => {
    const adapter = await make(1);
    const inputs = [{ adapter }, { adapter }];
    expectDeltas((await mergeAdapters(inputs, { method: 'slerp' })).adapter, deltasOf(adapter));
  });

  test('counts a matrix that an adapter does not change as zero', async () => {
    const [one, other] = [await make(1), await randomAdapter(SMALL_BASE, { seed: 2, targets: ['output'] })];
    const { adapter } = await mergeAdapters([{ adapter: one }, { adapter: other }], { rank: 4 });
    expectDeltas(
      adapter,
      [...deltasOf(one), ...deltasOf(other)].map((delta) => delta.map((value) => value / 2)),
    );
  });
});

describe('dense methods', () => {
  test('TIES keeps the largest values, elects a sign and averages values that agree', async () => {
    const adapters = await Promise.all([make(1), make(2), make(3)]);
    const weights = [1, 0.5, 2];
    const density = 0.4;
    const sets = adapters.map(deltasOf);
    const expected = sets[0]!.map((matrix, i) => {
      const trimmed = sets.map((set) => {
        const order = set[i]!.map((value, at) => [Math.abs(value), at] as const).sort(
          (x, y) => y[0] - x[0] || x[1] - y[1],
        );
        const chosen = new Set(order.slice(0, Math.ceil(density * order.length)).map(([, at]) => at));
        return set[i]!.map((value, at) => (chosen.has(at) ? value : 0));
      });
      return matrix.map((_, at) => {
        const values = trimmed.map((set, k) => weights[k]! * set[at]!);
        const sign = Math.sign(values.reduce((sum, value) => sum + value, 0));
        const agreeing = values.flatMap((value, k) => (value !== 0 && Math.sign(value) === sign ? [k] : []));
        const total = agreeing.reduce((sum, k) => sum + weights[k]!, 0);
        return total === 0 ? 0 : agreeing.reduce((sum, k) => sum + values[k]!, 0) / total;
      });
    });
    const inputs = adapters.map((adapter, i) => ({ adapter, weight: weights[i]! }));
    const { adapter, report } = await mergeAdapters(inputs, { method: 'ties', density, rank: 24 });
    expectDeltas(adapter, expected);
    expect(Math.max(...report.matrices.map(({ rank }) => rank))).toBe(16);
  });

  test('DARE drops values by the seed and rescales: its mean over seeds is task arithmetic', async () => {
    const adapters = await Promise.all([make(1), make(2)]);
    const inputs = adapters.map((adapter) => ({ adapter }));
    const merge = async (seed: number) =>
      deltasOf((await mergeAdapters(inputs, { method: 'dare', density: 0.5, seed, rank: 16 })).adapter)[0]!;
    expect(await merge(1)).toEqual(await merge(1));
    expect(await merge(1)).not.toEqual(await merge(2));
    const exact = mix(adapters.map(deltasOf), [1, 1])[0]!;
    const runs = await Promise.all(Array.from({ length: 200 }, (_, seed) => merge(seed)));
    const mean = exact.map((_, at) => runs.reduce((sum, run) => sum + run[at]!, 0) / runs.length);
    // Over 200 draws with half of the values dropped, the mean is off by about 1 / sqrt(200) of a value.
    expect(sizeOf(mean.map((value, at) => value - exact[at]!))).toBeLessThan(0.1 * sizeOf(exact));
    const random = createRandom(1);
    const first = deltaOf(adapters[0]!.factors[0]!).map((value) => (random.next() < 0.5 ? 2 * value : 0));
    const second = deltaOf(adapters[1]!.factors[0]!).map((value) => (random.next() < 0.5 ? 2 * value : 0));
    (await merge(1)).forEach((value, at) => expect(value).toBeCloseTo(first[at]! + second[at]!, 5));
  });

  test('rejects matrices that are too large to form and names both sizes', async () => {
    const [numRows, numCols] = [2 ** 16, 2 ** 11];
    const big = await createAdapter('llama', [
      {
        target: 'output',
        layer: -1,
        numCols,
        numRows,
        rank: 1,
        scale: 1,
        a: new Float32Array(numCols),
        b: new Float32Array(numRows),
      },
    ]);
    await expect(mergeAdapters([{ adapter: big }], { method: 'ties' })).rejects.toThrow(
      /output is 65536 x 2048, .* 67108864/,
    );
  });
});

const matrixOf = (numRows: number, numCols: number, seed: number): Matrix =>
  createMatrix(numRows, numCols, Float64Array.from(normals(numRows * numCols, seed)));
const difference = (x: Matrix, y: Matrix): number => Math.hypot(...x.values.map((value, i) => value - y.values[i]!));
const isOrthonormal = (matrix: Matrix): boolean => {
  const product = multiply(transpose(matrix), matrix);
  return product.values.every((value, at) => {
    return Math.abs(value - (at % (product.numCols + 1) === 0 ? 1 : 0)) < 1e-12;
  });
};

describe('decompositions', () => {
  test('QR and SVD reproduce the matrix, with orthonormal parts and descending singular values', () => {
    const sizes = fc.integer({ min: 1, max: 12 });
    fc.assert(
      fc.property(sizes, sizes, fc.nat(1000), (numRows, numCols, seed) => {
        const matrix = matrixOf(Math.max(numRows, numCols), Math.min(numRows, numCols), seed);
        const { q, r } = thinQr(matrix);
        expect(isOrthonormal(q)).toBe(true);
        expect(difference(multiply(q, r), matrix)).toBeLessThan(1e-12);
        for (const one of [matrix, transpose(matrix)]) {
          const { u, s, vt } = thinSvd(one);
          expect(isOrthonormal(u) && isOrthonormal(transpose(vt))).toBe(true);
          expect([...s]).toEqual([...s].sort((a, b) => b - a));
          const scaled = createMatrix(
            u.numRows,
            u.numCols,
            u.values.map((value, at) => value * s[at % u.numCols]!),
          );
          expect(difference(multiply(scaled, vt), one)).toBeLessThan(1e-11);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('drops only the smallest singular values at a lower rank', () => {
    const matrix = matrixOf(20, 12, 7);
    const { s } = thinSvd(matrix);
    const product = {
      b: matrix,
      a: createMatrix(
        12,
        12,
        Float64Array.from({ length: 144 }, (_, i) => (i % 13 === 0 ? 1 : 0)),
      ),
    };
    for (const refactored of [
      refactorDense(matrix, 5),
      refactorProduct(product, 5),
      refactorDense(transpose(matrix), 5),
    ]) {
      const back = multiply(refactored.b, refactored.a);
      const remainder = Math.hypot(...s.subarray(5));
      expect(difference(back, back.numRows === 20 ? matrix : transpose(matrix))).toBeCloseTo(remainder, 10);
      expect(refactored.keptEnergy).toBeCloseTo(1 - (remainder / Math.hypot(...s)) ** 2, 12);
    }
  });

  test('approximates a large matrix without a full decomposition', () => {
    const exact = multiply(matrixOf(230, 6, 1), matrixOf(6, 210, 2));
    const noisy = createMatrix(
      230,
      210,
      exact.values.map((value, i) => value + 1e-3 * Math.sin(i)),
    );
    const { b, a, rank, keptEnergy } = refactorDense(noisy, 6);
    expect(rank).toBe(6);
    expect(difference(multiply(b, a), exact)).toBeLessThan(1e-2 * Math.hypot(...exact.values));
    expect(keptEnergy).toBeGreaterThan(0.999);
  });
});

test('rejects adapters that cannot be merged', async () => {
  const adapter = await make(1);
  const other = await createAdapter('qwen2', adapter.factors);
  const wider = await randomAdapter({ ...SMALL_BASE, feedForwardDim: 32 }, { seed: 1, targets: ['ffn_down'] });
  await expect(mergeAdapters([])).rejects.toThrow('takes 1 to 64 adapters, got 0');
  await expect(mergeAdapters([{ adapter }, { adapter: other }])).rejects.toThrow(
    'adapter is for llama, another for qwen2',
  );
  await expect(mergeAdapters([{ adapter }, { adapter: wider }])).rejects.toThrow(
    'ffn_down is 16 x 24 in one and 16 x 32',
  );
  await expect(mergeAdapters([{ adapter, weight: NaN }])).rejects.toThrow('weights must be -1000 to 1000, got NaN');
  await expect(mergeAdapters([{ adapter }], { rank: 100 })).rejects.toThrow('"rank" must be an integer from 1 to 64');
  await expect(mergeAdapters([{ adapter }], { method: 'mean' as 'linear' })).rejects.toThrow('one of linear');
});
