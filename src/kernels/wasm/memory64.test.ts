import { expect, test } from 'vitest';
import { createNodeWasmPlatform } from '../../platform/node/kernels/wasm-platform.ts';
import type { KernelPackFactory } from '../contract.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { createFarFactory, FAR } from './far-factory.contract.ts';
import { type AddressBits, hasMemory64 } from './memory64.ts';
import { createProgram, programBytes } from './program.ts';
import { createWasmPackFactory } from './wasm-pack.ts';

const platform = createNodeWasmPlatform();
const { build: chosen } = await platform.loadModule();
const options = { numThreads: 1, maxTokens: 1, maxCols: 32 } as const;

/** A factory that notes the kernels which its packs load. */
function createWatchedFactory(): { factory: KernelPackFactory; loaded: (AddressBits | undefined)[] } {
  const loaded: (AddressBits | undefined)[] = [];
  const factory = createWasmPackFactory({
    ...platform,
    loadModule(addressBits) {
      loaded.push(addressBits);
      return platform.loadModule(addressBits);
    },
  });
  return { factory, loaded };
}

test('kernels for 32-bit addresses are used if the memory fits into 4 GiB', async () => {
  const { factory, loaded } = createWatchedFactory();
  const pack = await factory.create({ ...options, arenaBytes: FAR - 2 ** 26 });
  expect(pack.name).toBe(`wasm (${chosen})`);
  await pack.dispose();
  expect(loaded).toEqual([32]);
});

test.runIf(hasMemory64())('kernels for 64-bit addresses are used if the memory does not', async () => {
  const { factory, loaded } = createWatchedFactory();
  const pack = await factory.create({ ...options, arenaBytes: FAR });
  expect(pack.name).toBe(`wasm (${chosen}, 64-bit addresses)`);
  expect(pack.arena.sizeBytes).toBeGreaterThan(FAR);
  await pack.dispose();
  expect(loaded).toEqual([64]);
});

test('without Memory64, more than 4 GiB is rejected with both sizes and the missing feature', async () => {
  const factory = createWasmPackFactory({ ...platform, hasMemory64: false });
  expect(factory).toMatchObject({ maxArenaBytes: FAR - 2 ** 16, limitReason: expect.stringContaining('Memory64') });
  await expect(factory.create({ ...options, arenaBytes: FAR })).rejects.toMatchObject({
    code: 'out_of_memory',
    message: expect.stringMatching(
      /needs 4\d{9} bytes, WASM memory is limited to 4294901760: .*no WebAssembly Memory64/,
    ),
    data: { limitBytes: FAR - 2 ** 16 },
  });
});

test('with Memory64, more than 16 GiB is rejected with both sizes', async () => {
  const factory = createWasmPackFactory({ ...platform, hasMemory64: true });
  expect(factory.maxArenaBytes).toBe(4 * FAR - 2 ** 16);
  expect(factory.limitReason).toBeUndefined();
  await expect(factory.create({ ...options, arenaBytes: 4 * FAR })).rejects.toMatchObject({
    code: 'out_of_memory',
    message: expect.stringMatching(/needs 17\d{9} bytes, WASM memory is limited to 17179803648$/),
    data: { limitBytes: 4 * FAR - 2 ** 16 },
  });
});

test('a record has the upper halves of its words after the lower ones', () => {
  const buffer = new ArrayBuffer(programBytes(64));
  const program = createProgram(buffer, 0, 64, () => {});
  program.record(1, [0]);
  program.record(7, [3 * FAR + 2 ** 31 + 4, -1, { f32: 1 }]);
  const words = new Int32Array(buffer, 256, 64);
  expect([...words.subarray(0, 6)]).toEqual([7, 1, -(2 ** 31) + 4, -1, 0x3f800000, 0]);
  expect([...words.subarray(34, 38)]).toEqual([3, -1, 0, 0]);
});

if (hasMemory64()) {
  for (const build of ['signed-dot', 'relaxed-simd', 'simd128'] as const) {
    if (build === 'signed-dot' && build !== chosen) continue;
    const far = createFarFactory(createWasmPackFactory(createNodeWasmPlatform([build])));
    describeKernelPack(`wasm ${build} beyond 4 GiB`, () => far);
  }
} else console.log('kernels beyond 4 GiB are tested in Chromium only: this Node has no Memory64');
