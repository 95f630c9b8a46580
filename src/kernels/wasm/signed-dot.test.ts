import { expect, test } from 'vitest';
import { createNodeWasmPlatform } from '../../platform/node/kernels/wasm-platform.ts';
import { allTypes, expectSameBits, type PackFixture, randomMatrix, withPack } from '../pack-fixture.contract.ts';
import { hasSignedDot } from './signed-dot-probe.ts';
import { createWasmPackFactory } from './wasm-pack.ts';

/** Before any test: relaxed SIMD is behind a flag in Node 20, which the platform sets. */
const chosen = await createNodeWasmPlatform().loadModule();
const factoryOf = (build: typeof chosen.build) => createWasmPackFactory(createNodeWasmPlatform([build]));

test('selects signed-dot on arm64 with an exact signed dot product, and relaxed-simd elsewhere', () => {
  const isSigned = process.arch === 'arm64' && hasSignedDot();
  expect(chosen.build).toBe(isSigned ? 'signed-dot' : 'relaxed-simd');
});

test.runIf(process.arch === 'arm64')('detects the signed dot product on arm64', () => {
  expect(hasSignedDot()).toBe(true);
});

test('rejects signed-dot as the only build where it is not selected', async () => {
  const alone = createNodeWasmPlatform(['signed-dot']).loadModule();
  if (chosen.build === 'signed-dot') await expect(alone).resolves.toMatchObject({ build: 'signed-dot' });
  else await expect(alone).rejects.toThrow(/signed bytes/);
});

test.each(['relaxed-simd', 'simd128'] as const)('loads %s if it is the only allowed build', async (build) => {
  await expect(createNodeWasmPlatform([build]).loadModule()).resolves.toMatchObject({ build });
});

/** 41 rows: two whole tiles, and a third that ends within a group. */
const [NUM_ROWS, NUM_COLS] = [41, 512];

test.runIf(chosen.build === 'signed-dot').each(allTypes)('%s has the same bits as relaxed-simd', async (type) => {
  const { bytes } = randomMatrix(type, NUM_ROWS, NUM_COLS, 7);
  const results: Float32Array[][] = [];
  const compute = async ({ pack, put, putInts, output, matrix }: PackFixture): Promise<void> => {
    const weight = matrix(type, NUM_ROWS, NUM_COLS, bytes);
    const bias = put(Float32Array.from({ length: NUM_ROWS }, (_, i) => Math.cos(i)));
    const rows = output(3 * NUM_COLS);
    pack.gatherRows({ table: weight, ids: putInts([0, 40, 18]), out: rows.offset, numRows: 3, scale: 1 });
    const read = [await rows.read()];
    for (const numTokens of [1, 4, 7]) {
      const x = put(Float32Array.from({ length: NUM_COLS * numTokens }, (_, i) => Math.sin(i) * (1 + (i % 37))));
      const out = output(NUM_ROWS * numTokens, new Float32Array(NUM_ROWS * numTokens).fill(0.5));
      pack.matmul({ x, numTokens, outputs: [{ weight, out: out.offset, bias, accumulate: true }] });
      read.push(await out.read());
    }
    results.push(read);
  };
  await withPack(factoryOf('relaxed-simd'), compute);
  await withPack(factoryOf('signed-dot'), compute);
  results[1]!.forEach((values, i) => expectSameBits(values, results[0]![i]!, `${type}, result ${i}`));
});
