import { describe, expect, test } from 'vitest';
import { buildRandomModel, type RandomArchitecture, type RandomModelOptions } from '../../test/support/random-model.ts';
import { randomAdapter } from '../../test/support/random-adapter.ts';
import { continueGreedily, runParts, testLimits } from '../../test/support/run-model.ts';
import { planPlacement, writePlacement } from '../adapters/index.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { openGguf } from '../gguf/index.ts';
import type { KernelPackFactory } from '../kernels/contract.ts';
import { createFakeDeviceFactory } from '../kernels/split/fake-device.contract.ts';
import { createWasmPackFactory } from '../kernels/wasm/wasm-pack.ts';
import { createNodeWasmPlatform } from '../platform/node/kernels/wasm-platform.ts';
import { chooseSplit, type GpuLayers } from './choose-split.ts';
import { loadModel } from './load-model.ts';
import { architectures, isDecoder } from './registry.ts';
import type { LoadedModel, ModelLimits } from './types.ts';

/** The operations that the WebGPU pack lacks. */
const MISSING = ['experts', 'causalConv', 'selectiveScan', 'deltaScan', 'mixStreams', 'matchLengths', 'sparsify'];
const cpu = createWasmPackFactory(createNodeWasmPlatform(['simd128']));
const NUM_LAYERS = 6;
const PROMPT = Array.from({ length: 21 }, (_, i) => (i * 37 + 5) % 250);
const PAGES = [7, 2, 11];

function createGpu(missing: readonly string[] = MISSING, maxDataBytes = Infinity): KernelPackFactory {
  return { ...createFakeDeviceFactory(cpu, missing), device: { missing, maxDataBytes, memoryBytes: null } };
}

interface Options {
  readonly gpuLayers: GpuLayers;
  readonly gpuMemoryBytes?: number | null;
  readonly gpu?: KernelPackFactory;
  readonly limits?: ModelLimits;
}

function choose(bytes: Uint8Array, options: Options) {
  const { gpuLayers, gpuMemoryBytes = null, gpu = createGpu(), limits = testLimits } = options;
  const gguf = openGguf(createMemorySource(bytes));
  return { gguf, limits, ...chooseSplit(gguf, { gpu, cpu, gpuLayers, gpuMemoryBytes }, limits) };
}

function loadSplit(bytes: Uint8Array, options: Options): Promise<LoadedModel> {
  const { gguf, limits, factory, split, report } = choose(bytes, options);
  return loadModel(gguf, factory, { limits, split: { split, report } });
}

const random = (options: Partial<RandomModelOptions> = {}): Uint8Array =>
  buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 1, shape: { numLayers: NUM_LAYERS }, ...options });

async function loadWhole(bytes: Uint8Array, limits: ModelLimits = testLimits): Promise<LoadedModel> {
  return loadModel(openGguf(createMemorySource(bytes)), cpu, { limits });
}

describe.each([...architectures.keys()].filter(isDecoder) as RandomArchitecture[])('%s', (architecture) => {
  test('computes the same bits with its last layers on the other side', async () => {
    const bytes = random({ architecture });
    const whole = await loadWhole(bytes);
    const { numLayers } = whole.shape;
    const expected = await continueGreedily(whole, PROMPT, 20, PAGES);
    await whole.dispose();
    for (const gpuLayers of [1, Math.ceil(numLayers / 2), numLayers]) {
      const model = await loadSplit(bytes, { gpuLayers });
      expect(model.memory.split).toMatchObject({ numLayers, numGpuLayers: gpuLayers });
      const actual = await continueGreedily(model, PROMPT, 20, PAGES);
      await model.dispose();
      expect(actual).toEqual(expected);
    }
  });
});

test.each(['llama', 'gemma3', 'gemma4', 'granitehybrid'] as const)(
  '%s: packed and copied pages keep their bits',
  async (architecture) => {
    for (const packedPrecision of ['q8', 'q4'] as const) {
      const limits: ModelLimits = { ...testLimits, packedPrecision };
      const bytes = random({ architecture, shape: { numLayers: NUM_LAYERS, contextLength: 256 } });
      const run = async (model: LoadedModel): Promise<Float32Array[]> => {
        const { pages } = model;
        const tokens = Array.from({ length: 48 }, (_, i) => (i * 31 + 7) % 250);
        await runParts(model, [{ tokenIds: tokens.slice(0, 32), start: 0, pageIds: [0, 1, 2] }]);
        await runParts(model, [{ tokenIds: tokens.slice(32, 40), start: 32, pageIds: [0, 1, 2] }]);
        // Packed pages that touch, in the memory of the last float pages.
        const { pageBytes, unitBytes } = pages.packed!;
        const first = (14 * pages.pageBytes) / unitBytes;
        const packed = [0, 1, 2].map((i) => first + (i * pageBytes) / unitBytes) as [number, number, number];
        await pages.packPages([
          { from: 0, to: packed[0] },
          { from: 1, to: packed[1] },
        ]);
        pages.copyPage('packed', packed[0], packed[2]);
        pages.copyPage('float', 2, 9);
        // The pages that were read before are overwritten.
        const other = await runParts(model, [{ tokenIds: tokens.slice(0, 32), start: 0, pageIds: [2, 0] }]);
        const tail = { tokenIds: tokens.slice(40), start: 40, pageIds: [~packed[2], ~packed[1], 9] };
        return model.states === null ? [...other, ...(await runParts(model, [tail]))] : other;
      };
      const whole = await loadWhole(bytes, limits);
      const expected = await run(whole);
      await whole.dispose();
      const model = await loadSplit(bytes, { gpuLayers: Math.ceil(whole.shape.numLayers / 2), limits });
      expect(await run(model)).toEqual(expected);
      await model.dispose();
    }
  },
);

test('adapters change layers of both sides like those of one', async () => {
  const limits: ModelLimits = { ...testLimits, numPages: 200 };
  const bytes = random({ type: 'F32' });
  const run = async (model: LoadedModel): Promise<Float32Array[]> => {
    const adapter = await randomAdapter(model.shape, { seed: 3 });
    const { kv, pack } = model;
    const slabBytes = 40 * kv.pageBytes;
    const plan = planPlacement(adapter.factors, slabBytes);
    const slabs = Array.from({ length: plan.numSlabs }, (_, i) => kv.base + 8 * kv.pageBytes + i * slabBytes);
    model.setAdapter(0, writePlacement(plan, pack.arena, slabs));
    const part = { tokenIds: PROMPT, start: 0, pageIds: PAGES.map((_, i) => i), adapters: [{ slot: 0, scale: 1 }] };
    const rows = await runParts(model, [part]);
    await model.dispose();
    return rows;
  };
  const expected = await run(await loadWhole(bytes, limits));
  expect(await run(await loadSplit(bytes, { gpuLayers: 3, limits }))).toEqual(expected);
});

describe('the number of layers', () => {
  const bytes = random();
  const whole = choose(bytes, { gpuLayers: NUM_LAYERS });
  const { gpu: wholeBytes } = whole.report;
  /** The GPU's bytes with so many layers. */
  const bytesWith = (count: number): number => {
    const limitOf = (limit: number): number | null => {
      const { report } = choose(bytes, { gpuLayers: 'auto', gpuMemoryBytes: limit });
      return report.numGpuLayers;
    };
    let [low, high] = [1, 2 ** 30];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (limitOf(middle)! >= count) high = middle;
      else low = middle + 1;
    }
    return low;
  };

  test('all layers of a model without missing operations are the kernels of the GPU, unchanged', () => {
    const gpu = createGpu();
    for (const gpuLayers of ['auto', NUM_LAYERS] as const) {
      const { factory, split, report } = choose(bytes, { gpuLayers, gpu });
      expect(factory).toBe(gpu);
      expect(split).toBeNull();
      expect(report).toMatchObject({ numGpuLayers: NUM_LAYERS, cpu: { weightBytes: 0, kvBytes: 0 } });
    }
  });

  test('no layers are the kernels of the processor', () => {
    const { factory, split, report } = choose(bytes, { gpuLayers: 0 });
    expect(factory).toBe(cpu);
    expect(split).toBeNull();
    expect(report).toMatchObject({ numGpuLayers: 0, gpu: { weightBytes: 0, kvBytes: 0 } });
  });

  test('auto takes one layer more with the last byte that it needs', () => {
    for (const count of [1, 3, NUM_LAYERS]) {
      const neededBytes = bytesWith(count);
      expect(choose(bytes, { gpuLayers: 'auto', gpuMemoryBytes: neededBytes }).report.numGpuLayers).toBe(count);
      expect(choose(bytes, { gpuLayers: 'auto', gpuMemoryBytes: neededBytes - 1 }).report.numGpuLayers).toBe(count - 1);
      expect(() => choose(bytes, { gpuLayers: count, gpuMemoryBytes: neededBytes - 1 })).toThrowError(
        expect.objectContaining({
          code: 'out_of_memory',
          data: { gpuLayers: count, neededBytes, limitBytes: neededBytes - 1 },
        }),
      );
    }
  });

  test('auto keeps what one buffer must hold within the limit of the adapter', () => {
    const limited = (maxDataBytes: number) =>
      choose(bytes, { gpuLayers: 'auto', gpu: createGpu(MISSING, maxDataBytes) }).report;
    const activations = bytesWith(1);
    expect(limited(activations + wholeBytes.kvBytes).numGpuLayers).toBeGreaterThan(0);
    expect(limited(1024).numGpuLayers).toBe(0);
    const half = limited(choose(bytes, { gpuLayers: 3 }).gpuDataBytes);
    expect(half.numGpuLayers).toBe(3);
  });

  test('a side has the bytes that the report names', async () => {
    const created: Record<string, { arenaBytes: number; usedBytes: () => number }> = {};
    const watch = (name: string, factory: KernelPackFactory): KernelPackFactory => ({
      ...factory,
      async create(options) {
        const pack = await factory.create(options);
        const before = pack.arena.usedBytes;
        created[name] = { arenaBytes: options.arenaBytes, usedBytes: () => pack.arena.usedBytes - before };
        return pack;
      },
    });
    const gguf = openGguf(createMemorySource(bytes));
    const gpu = watch('gpu', createGpu());
    const wish = { gpu, cpu: watch('cpu', cpu), gpuLayers: 2, gpuMemoryBytes: null };
    const { factory, split, report } = chooseSplit(gguf, wish, testLimits);
    const model = await loadModel(gguf, factory, { limits: testLimits, split: { split, report } });
    for (const side of ['gpu', 'cpu']) expect(created[side]!.usedBytes()).toBe(created[side]!.arenaBytes);
    // Two of six layers.
    expect(report.gpu.kvBytes).toBe(Math.ceil(64 / 3 / 4) * 4 * (model.kv.pageBytes / 64) * testLimits.numPages);
    await model.dispose();
  });

  test.each([-1, NUM_LAYERS + 1, 1.5])('refuses %d with the number of layers', (gpuLayers) => {
    expect(() => choose(bytes, { gpuLayers })).toThrowError(
      expect.objectContaining({
        code: 'invalid_option',
        message: `option "gpuLayers" is ${gpuLayers}; the model has ${NUM_LAYERS} layers. Use 0 to ${NUM_LAYERS}, or auto`,
        data: { option: 'gpuLayers', gpuLayers, numLayers: NUM_LAYERS },
      }),
    );
  });

  test('operations that the GPU lacks run on the processor, with their weights', () => {
    const { factory, split, report } = choose(random({ architecture: 'qwen3moe' }), { gpuLayers: 'auto' });
    expect(factory.name).toBe('device wasm + wasm');
    expect(report.numGpuLayers).toBe(NUM_LAYERS);
    expect([...split!.hostMatrices].filter((name) => !name.endsWith('_exps.weight'))).toEqual([]);
    expect(split!.hostMatrices.size).toBe(3 * NUM_LAYERS);
  });
});
