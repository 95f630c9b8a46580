import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { randomBlocks } from '../../../test/support/random-blocks.ts';
import type { TensorTypeName } from '../../core/tensor-type.ts';
import { loadNativeBuilds } from '../../platform/node/kernels/native-addon.ts';
import { rowBytes } from '../../quant/index.ts';
import { LAYOUT_VERSION, NATIVE_LAYOUTS } from './layouts.ts';
import { createNativePackFactory } from './native-pack.ts';

const builds = loadNativeBuilds();
const NUM_COLS = 512;

/**
 * Packed matrices are stored on disk, where other versions of the program read them: changed bytes need a new
 * LAYOUT_VERSION, and then new digests here.
 */
const DIGESTS: { version: number; types: Record<TensorTypeName, string> } = {
  version: 1,
  types: {
    F32: '938d322a462c984e',
    F16: '9cde27a4e344104c',
    BF16: 'e05bed456850d251',
    Q4_0: '3c9771ef88774f8b',
    Q8_0: 'df8dbdbdd1428a89',
    Q5_0: '02804d498f63292c',
    Q3_K: 'bf3a3501dbd0714e',
    Q4_1: '9f00771858388a96',
    Q5_1: '1cc1a06ee750bd60',
    Q2_K: 'acfc74c1979dd543',
    Q5_K: 'd9d20331181e8aea',
    Q4_K: '502c83a43d7adf50',
    Q6_K: '2120cfba173fb4b0',
    IQ4_NL: '8b6898732dbf3cba',
    IQ4_XS: '222eb1e88cc9ffb9',
    IQ2_XXS: '5f6cbe8056860f7b',
    IQ1_M: 'cf6800b6d8b3c495',
    IQ1_S: '5afc089630ad6b74',
    IQ2_S: 'fd06ac429158132c',
    IQ2_XS: '6cd8bd6a060469b7',
    IQ3_S: '9aaa9f3b5169b4b7',
    IQ3_XXS: '0354ab97e52c5dd5',
    MXFP4: '4259a3004a8135a7',
    NVFP4: 'a0b0acbc82c813f4',
    Q1_0: '3d978215166bc100',
    Q2_0: '01e6f64495de05ee',
    Q8_K: '434e9c0203eae979',
    TQ1_0: 'd8c03160439add10',
    TQ2_0: '07a9e468aed71248',
  },
};

test('the layout version matches the digests', () => {
  expect(LAYOUT_VERSION).toBe(DIGESTS.version);
});

for (const native of builds) {
  test(`${native.build} packs every type as the layout version specifies, for any number of rows`, async () => {
    const factory = createNativePackFactory(native);
    const types = Object.keys(NATIVE_LAYOUTS) as TensorTypeName[];
    const digests = await Promise.all(
      types.map(async (type) => {
        const hash = createHash('sha256');
        for (const numRows of [32, 37, 1]) {
          const bytes = randomBlocks(type, numRows * NUM_COLS, numRows, 1);
          const pack = await factory.create({ arenaBytes: 1 << 20, numThreads: 2, maxTokens: 1, maxCols: NUM_COLS });
          const source = { name: type, type, numRows, numCols: NUM_COLS };
          const { offset, sizeBytes } = pack.loadMatrix({
            ...source,
            readInto: (target, at) => target.set(bytes.subarray(at, at + target.length)),
          });
          expect(bytes.length).toBe(numRows * rowBytes(type, NUM_COLS));
          hash.update(pack.arena.u8(offset, sizeBytes));
          await pack.dispose();
        }
        return [type, hash.digest('hex').slice(0, 16)];
      }),
    );
    expect(Object.fromEntries(digests)).toEqual(DIGESTS.types);
  });
}
