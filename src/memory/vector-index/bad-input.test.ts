import { expect, test } from 'vitest';
import { createReferencePackFactory } from '../../kernels/reference/reference-pack.ts';
import { createExactIndex, createHnswIndex } from './create-index.ts';
import { keysOf } from './index-fixture.contract.ts';

const kernels = createReferencePackFactory();
const refusal = expect.objectContaining({ code: 'invalid_option' });

test('[VI30] [VI31] refuses vectors that cannot be compared, without changes', async () => {
  const index = await createHnswIndex({ kernels, dim: 3 });
  await index.add(1, Float32Array.of(1, 0, 0));
  const bad: unknown[] = [
    Float32Array.of(1, NaN, 0),
    Float32Array.of(1, Infinity, 0),
    Float32Array.of(-Infinity, 0, 0),
    Float32Array.of(0, -0, 0),
    Float32Array.of(1, 0),
    Float32Array.of(1, 0, 0, 0),
    [1, 0, 0],
    Float64Array.of(1, 0, 0),
    null,
    undefined,
  ];
  for (const vector of bad as Float32Array[]) {
    await expect(index.add(1, vector)).rejects.toEqual(refusal);
    expect(() => index.search({ vector, k: 1 })).toThrowError(refusal);
  }
  await expect(index.addMany([2, 3], Float32Array.of(0, 1, 0, 0, NaN, 0))).rejects.toEqual(refusal);
  await expect(index.addMany([2, 3], Float32Array.of(0, 1, 0))).rejects.toEqual(refusal);
  await expect(index.addMany([2, 2], Float32Array.of(0, 1, 0, 1, 0, 0))).rejects.toEqual(refusal);
  for (const key of [0, -1, 1.5, NaN, 2 ** 53, '1' as unknown as number]) {
    await expect(index.add(key, Float32Array.of(0, 1, 0))).rejects.toEqual(refusal);
    await expect(index.addMany([9, key], Float32Array.of(0, 1, 0, 1, 0, 0))).rejects.toEqual(refusal);
  }
  const vector = Float32Array.of(1, 1, 0);
  for (const count of [0, -1, 1.5, NaN, 1_000_000, '3' as unknown as number]) {
    expect(() => index.search({ vector, k: count })).toThrowError(refusal);
    expect(() => index.search({ vector, k: 1, ef: count })).toThrowError(refusal);
  }
  expect(index.size).toBe(1);
  expect(keysOf(index.search({ vector, k: 10_000 }))).toEqual([1]);
  expect(index.get(1)).toEqual(Float32Array.of(1, 0, 0));
  expect([index.get(2), index.has(2), index.delete(2)]).toEqual([null, false, false]);
  await index.dispose();
  await index.dispose();
  expect(() => index.search({ vector, k: 1 })).toThrowError(expect.objectContaining({ code: 'not_loaded' }));
  await expect(index.add(1, vector)).rejects.toMatchObject({ code: 'not_loaded' });
});

test('[VI30] unknown options and sizes out of range are refused', async () => {
  for (const options of [
    { dim: 0 },
    { dim: 1e9 },
    { m: 1 },
    { metric: 'angle' },
    { efconstruction: 3 },
    { kernels: {} },
  ]) {
    await expect(createExactIndex({ kernels, ...options } as never)).rejects.toEqual(refusal);
  }
});

test('accepts zero, huge and tiny vectors with dot and l2', async () => {
  for (const metric of ['dot', 'l2'] as const) {
    const index = await createHnswIndex({ kernels, dim: 2, metric });
    await index.addMany([1, 2, 3, 4], Float32Array.of(0, 0, 3e38, -3e38, 1e-45, 0, 1, 1));
    expect(keysOf(index.search({ vector: Float32Array.of(1, 1), k: 4 })).length).toBe(4);
    await index.dispose();
  }
  const index = await createExactIndex({ kernels, dim: 2 });
  await index.addMany([1, 2], Float32Array.of(1e-45, 0, 3e38, 3e38));
  expect(index.search({ vector: Float32Array.of(2e-45, 0), k: 1 })).toEqual([{ key: 1, score: 1 }]);
  await index.dispose();
});

test('an empty index finds nothing', async () => {
  for (const create of [createExactIndex, createHnswIndex]) {
    const index = await create({ kernels, dim: 2 });
    expect(index.search({ vector: Float32Array.of(1, 1), k: 3 })).toEqual([]);
    await index.addMany([], new Float32Array(0));
    await index.add(5, Float32Array.of(1, 1));
    expect(index.delete(5)).toBe(true);
    expect(index.search({ vector: Float32Array.of(1, 1), k: 3 })).toEqual([]);
    await index.add(6, Float32Array.of(1, 2));
    expect(keysOf(index.search({ vector: Float32Array.of(1, 1), k: 3 }))).toEqual([6]);
    index.checkIntegrity();
    await index.dispose();
  }
});
