import { existsSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { campaign } from '../../../test/support/campaign.ts';
import { createNodeWasmPlatform } from '../../platform/node/kernels/wasm-platform.ts';
import { nodeGpu } from '../../platform/node/kernels/webgpu-platform.ts';
import { describeAttentionEdges } from '../pack-attention-edges.contract.ts';
import { describeAttention } from '../pack-attention.contract.ts';
import { describeFused } from '../pack-fused.contract.ts';
import { describeMatmul } from '../pack-matmul.contract.ts';
import { describeShapes } from '../pack-shapes.contract.ts';
import { describePackedPages } from '../pack-packed-pages.contract.ts';
import { allTypes, disposeSharedPack, expectSameBits, withSmallPack } from '../pack-fixture.contract.ts';
import { makeRegion, runStep, type Sequence, sequencesOf, type Shape } from '../attention-fixture.contract.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { createReferencePackFactory } from '../reference/reference-pack.ts';
import { findKernelFault } from '../self-check.ts';
import { createSplitPackFactory } from '../split/split-pack.ts';
import { createWasmPackFactory } from '../wasm/wasm-pack.ts';
import { describeReplay } from './replay.contract.ts';
import { largestBuffer, openGpu, requestAdapter } from './open-gpu.ts';
import { createWebGpuPackFactory } from './webgpu-pack.ts';

/** The software driver of Debian's chromium: any GPU may be missing where tests run. */
const SOFTWARE_DRIVER = '/usr/lib/chromium/vk_swiftshader_icd.json';

async function whyNoGpu(): Promise<string | null> {
  if (process.env['VK_ICD_FILENAMES'] === undefined && existsSync(SOFTWARE_DRIVER)) {
    process.env['VK_ICD_FILENAMES'] = SOFTWARE_DRIVER;
  }
  try {
    await requestAdapter(await nodeGpu());
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const reason = await whyNoGpu();
if (reason === null) {
  const factory = createWebGpuPackFactory(async () => openGpu(await nodeGpu()));
  test.each(['Q4_0', 'Q8_0', 'Q4_K', 'Q6_K', 'F16', 'F32'] as const)(
    'computes products of %s, attention and norms like the reference',
    async (type) => expect(await findKernelFault(factory, createReferencePackFactory(), 1, [type])).toBe(null),
  );
  test('computes the same beside kernels of the processor, with sides by lot', async () => {
    const random = createRandom(5);
    const draw = () => (random.next() < 0.5 ? 'gpu' : 'cpu');
    const cpu = createWasmPackFactory(createNodeWasmPlatform(['simd128']));
    const sideOfOperation = (_: string, pages: number | null) => (pages === null ? draw() : 'gpu');
    const split = createSplitPackFactory({ gpu: factory, cpu, sideOfMatrix: draw, sideOfOperation });
    for (let round = 0; round < 4; round++) {
      expect(await findKernelFault(split, createReferencePackFactory(), 1, ['Q4_0', 'Q6_K'])).toBe(null);
    }
  });
  test('has room for the pages of a model', async () => {
    // Every WebGPU binds 128 MiB.
    expect(largestBuffer(await requestAdapter(await nodeGpu()))).toBeGreaterThanOrEqual(2 ** 27);
  });
  describeReplay('webgpu', () => factory);
  test('refuses operations of other models by name', async () => {
    const pack = await factory.create({ arenaBytes: 4096, numThreads: 1, maxTokens: 1, maxCols: 32 });
    expect(() => pack.selectiveScan({} as never)).toThrowError(
      expect.objectContaining({ code: 'unsupported', message: expect.stringContaining('selectiveScan') }),
    );
    await pack.dispose();
  });
  // The kernels of prompts with the few tokens of tests, beside those of single tokens.
  const tuning = { minWorkgroups: 1, mostVectorTokens: 1 };
  const prompts = createWebGpuPackFactory(async () => openGpu(await nodeGpu()), Infinity, tuning);
  test.each(['Q4_0', 'Q4_K', 'Q6_K', 'F16'] as const)('computes prompts with %s like the reference', async (type) =>
    expect(await findKernelFault(prompts, createReferencePackFactory(), 1, [type])).toBe(null),
  );
  test.each([0, 270])('attention of a prompt has the bits of its rows alone, with a window of %d', async (window) => {
    const shape: Shape = { numHeads: 8, numKvHeads: 2, headDim: 16, window, softcap: 0 };
    await withSmallPack(prompts, async (fixture) => {
      const kv = makeRegion(fixture, shape, 24);
      const [sequence, other] = sequencesOf(shape, [300, 70], 24) as [Sequence, Sequence];
      await runStep(fixture, kv, shape, [{ sequence: other, start: 0, end: 69 }]);
      const decoding = { sequence: other, start: 69, end: 70 };
      const together = await runStep(fixture, kv, shape, [decoding, { sequence, start: 0, end: 300 }]);
      for (const t of [0, 7, 100, 255, 256, 275, 299]) {
        const alone = await runStep(fixture, kv, shape, [{ sequence, start: t, end: t + 1 }]);
        expectSameBits(alone, together.slice((t + 1) * 128, (t + 2) * 128), `token ${t}`);
      }
      expectSameBits(await runStep(fixture, kv, shape, [decoding]), together.slice(0, 128), 'a sequence that decodes');
    });
  });
  // A software driver takes an hour for the whole suite.
  if (campaign({ short: false, long: true })) {
    describe('prompts', () => {
      afterAll(disposeSharedPack);
      describeAttention(() => prompts);
      describeAttentionEdges(() => prompts);
      describePackedPages(() => prompts);
      describeFused(() => prompts);
      describeMatmul(() => prompts, allTypes);
      describeShapes(() => prompts, allTypes);
    });
    describeKernelPack('webgpu', () => factory, ['vectors', 'states', 'streams', 'experts', 'programs']);
  } else console.log('the contract suite of webgpu kernels runs in the long form only');
} else {
  console.log(`webgpu kernels are not tested: ${reason}`);
  describe('webgpu', () => test.skip(`requires a GPU: ${reason}`, () => {}));
}
