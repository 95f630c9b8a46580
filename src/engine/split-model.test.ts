import { expect, test } from 'vitest';
import { buildRandomModel } from '../../test/support/random-model.ts';
import { opened, TOY_SPEC, toyRequest } from '../../test/support/toy-spec.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { RuvLLMError } from '../core/errors.ts';
import { openGguf } from '../gguf/index.ts';
import type { KernelPackFactory } from '../kernels/contract.ts';
import { createFakeDeviceFactory } from '../kernels/split/fake-device.contract.ts';
import { createWasmPackFactory } from '../kernels/wasm/wasm-pack.ts';
import { createNodeWasmPlatform } from '../platform/node/kernels/wasm-platform.ts';
import { createSampler } from '../sampling/sampler.ts';
import { createEngineServer } from './engine-server.ts';
import { loadPlanned } from './load-planned.ts';
import type { ModelReport, ModelSpec, ServerMessage } from './protocol.ts';
import type { EngineEvent } from './types.ts';

const NUM_LAYERS = 5;
const wasm = createWasmPackFactory(createNodeWasmPlatform(['simd128']));
const shape = { numLayers: NUM_LAYERS, contextLength: 512 };
const bytes = buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 3, shape });
const experts = buildRandomModel({ architecture: 'qwen3moe', type: 'Q8_0', seed: 3, shape });

/** A device that is lost in its `lostAt`-th step. */
function createDevice(lostAt = Infinity): KernelPackFactory {
  const missing = ['experts'];
  const factory = createFakeDeviceFactory(wasm, missing);
  return {
    ...factory,
    device: { missing, maxDataBytes: Infinity, memoryBytes: null },
    async create(options) {
      const pack = await factory.create(options);
      let numSyncs = 0;
      const sync: typeof pack.sync = (reads) => {
        if (++numSyncs >= lostAt) throw new RuvLLMError('device_lost', 'the GPU device was lost');
        return pack.sync(reads);
      };
      return new Proxy(pack, { get: (target, name) => (name === 'sync' ? sync : Reflect.get(target, name)) });
    },
  };
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Prompts of which the longest has packed pages. */
const PROMPT_LENGTHS = [300, 40, 17];
const NUM_TOKENS = 24;

/** The greedy tokens of several prompts at once. */
async function generate(file: Uint8Array, more: Partial<ModelSpec>, device = createDevice()) {
  const posted: ServerMessage[] = [];
  const specs: ModelSpec[] = [];
  const server = createEngineServer({
    post: (message) => posted.push(message),
    async openModel(spec) {
      specs.push(spec);
      const [factory, cpuFactory] = spec.kernels === 'webgpu' ? [device, wasm] : [wasm, null];
      const options = { factory, cpuFactory, weightStore: null, onProgress: () => {} };
      const { model } = await loadPlanned(spec, openGguf(createMemorySource(file)), options);
      return opened(model);
    },
    createSampler,
    now: () => 0,
    yieldToMessages: nextTurn,
    onCrash: (error) => expect.fail(String(error)),
  });
  const spec: ModelSpec = { ...TOY_SPEC, kvPacking: 'q8', kvCacheTokens: 2048, ...more };
  server.handle({ type: 'load', spec });
  const reports = (): ModelReport[] =>
    posted.flatMap((message) => (message.type === 'loaded' || message.type === 'replaced' ? [message.model] : []));
  while (reports().length === 0) {
    const failure = posted.find(({ type }) => type === 'loadFailed');
    if (failure !== undefined) throw new Error(JSON.stringify(failure));
    await nextTurn();
  }
  for (const [i, length] of PROMPT_LENGTHS.entries()) {
    const promptIds = Array.from({ length }, (_, t) => (t * 37 + i * 11 + 5) % 250);
    const request = toyRequest({ promptIds, maxTokens: NUM_TOKENS, seed: 1 });
    const sampling = { ...request.sampling, temperature: 0 };
    server.handle({ type: 'generate', request: { ...request, id: i + 1, sampling } });
  }
  const events = (): EngineEvent[] => posted.flatMap((message) => (message.type === 'events' ? message.events : []));
  const numOver = (): number => events().filter(({ type }) => type !== 'token').length;
  while (numOver() < PROMPT_LENGTHS.length) await nextTurn();
  const texts = PROMPT_LENGTHS.map((_, i) =>
    events().flatMap((event) => (event.type === 'token' && event.id === i + 1 ? [event.token.tokenId] : [])),
  );
  server.handle({ type: 'dispose' });
  return { texts, reports: reports(), specs };
}

const alone = await generate(bytes, { kernels: 'wasm' });
const expertsAlone = await generate(experts, { kernels: 'wasm' });

test.each([0, 1, 3, NUM_LAYERS, 'auto'] as const)('texts are the same with %s layers on the GPU', async (gpuLayers) => {
  const { texts, reports } = await generate(bytes, { kernels: 'webgpu', gpuLayers });
  expect(texts).toEqual(alone.texts);
  expect(texts.map(({ length }) => length)).toEqual(PROMPT_LENGTHS.map(() => NUM_TOKENS));
  const numGpuLayers = gpuLayers === 'auto' ? NUM_LAYERS : gpuLayers;
  expect(reports[0]!.memory.split).toMatchObject({ numLayers: NUM_LAYERS, numGpuLayers });
  expect(reports[0]!.kernels.includes(' + ')).toBe(numGpuLayers > 0 && numGpuLayers < NUM_LAYERS);
});

test('auto leaves layers on the processor that exceed the memory of the GPU', async () => {
  const whole = (await generate(bytes, { kernels: 'webgpu' })).reports[0]!.memory;
  const gpuMemoryBytes = Math.floor(whole.weightBytes * 0.6 + whole.kvBytes * 0.6 + whole.activationBytes);
  const { texts, reports } = await generate(bytes, { kernels: 'webgpu', gpuMemoryBytes });
  expect(texts).toEqual(alone.texts);
  const { numGpuLayers, gpu, cpu } = reports[0]!.memory.split!;
  expect(numGpuLayers).toBeGreaterThan(0);
  expect(numGpuLayers).toBeLessThan(NUM_LAYERS);
  expect(gpu.weightBytes + gpu.kvBytes).toBeLessThan(gpuMemoryBytes);
  expect(gpu.weightBytes + cpu.weightBytes).toBe(reports[0]!.memory.weightBytes);
});

test('a model with operations that the GPU lacks loads, and they run on the processor', async () => {
  const { texts, reports } = await generate(experts, { kernels: 'webgpu' });
  expect(texts).toEqual(expertsAlone.texts);
  expect(reports[0]!.memory.split).toMatchObject({ numGpuLayers: NUM_LAYERS });
  expect(reports[0]!.memory.split!.cpu.weightBytes).toBeGreaterThan(0);
});

test.each([1, 3, 12])('texts continue on the processor if the device is lost in step %i', async (lostAt) => {
  const { texts, reports, specs } = await generate(bytes, { kernels: 'webgpu', gpuLayers: 2 }, createDevice(lostAt));
  expect(texts).toEqual(alone.texts);
  expect(specs.map(({ kernels, gpuLayers }) => [kernels, gpuLayers])).toEqual([
    ['webgpu', 2],
    ['auto', 'auto'],
  ]);
  expect(reports.map(({ memory }) => memory.split?.numGpuLayers)).toEqual([2, undefined]);
});
