import { expect, test } from 'vitest';
import { opened } from '../../test/support/toy-spec.ts';
import { createInProcessTransport } from '../../test/support/in-process-transport.ts';
import { createMemoryRecords } from '../../test/support/memory-records.ts';
import { buildRandomModel, type RandomModelOptions } from '../../test/support/random-model.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { openGguf } from '../gguf/reader.ts';
import type { GgufFile } from '../gguf/types.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { loadModel } from '../models/load-model.ts';
import { createSampler } from '../sampling/sampler.ts';
import { type KeptState, loadModelFile } from './load-model.ts';
import { type ModelConfig, resolveModelConfig } from './model-config.ts';

/** Loads a random model through everything but a thread. */
function setUp(options: Partial<RandomModelOptions> = {}) {
  const bytes = buildRandomModel({ architecture: 'llama', type: 'F32', seed: 3, ...options });
  let numOpen = 0;
  const open = (): GgufFile => {
    numOpen++;
    return openGguf({ ...createMemorySource(bytes, 'random.gguf'), close: () => void numOpen-- });
  };
  const records = new Map<string, Uint8Array>();
  const kept: KeptState = {
    spill: { folder: 'f', limitBytes: 1, masterKey: new Uint8Array(32) },
    openSessions: (modelHash) => createMemoryRecords(records, modelHash),
    erasure: { name: 'f', erase: async () => {}, count: async () => 0 },
  };
  const transport = createInProcessTransport({
    createSampler,
    async openModel({ maxBatchTokens, maxSequences, kvCacheTokens }, onProgress) {
      const gguf = open();
      try {
        const numPages = Math.ceil((kvCacheTokens ?? 1024) / 16);
        const limits = { maxBatchTokens, maxSequences, maxLogitRows: maxSequences, numPages };
        const model = await loadModel(gguf, createReferencePackFactory(), {
          limits,
          onProgress: ({ loadedBytes, totalBytes }) => onProgress(loadedBytes, totalBytes),
        });
        return opened(model);
      } finally {
        gguf.source.close();
      }
    },
  });
  const load = (config: ModelConfig = {}) =>
    loadModelFile('random.gguf', resolveModelConfig(config, { numCpus: 1 }), {
      openModelFile: open,
      startEngine: () => transport,
      now: () => performance.now(),
      createSeed: () => 1,
      wallClock: () => 1,
      warn: () => {},
      openKeptState: () => kept,
      readAdapter: () => Promise.reject(new Error('no adapters here')),
    });
  return { load, transport, records, numOpenFiles: () => numOpen };
}

test('loads, tells its progress, generates, and keeps no file open', async () => {
  const { load, numOpenFiles } = setUp();
  const progress: [string, number, number | null][] = [];
  const model = await load({
    maxContext: 64,
    onProgress: ({ phase, doneBytes, totalBytes }) => progress.push([phase, doneBytes, totalBytes]),
  });
  const [phase, doneBytes, totalBytes] = progress.at(-1)!;
  expect(phase).toBe('load');
  expect(doneBytes).toBe(totalBytes);
  expect(model.modelInfo()).toMatchObject({ architecture: 'llama', quantization: 'F32', maxContext: 64 });
  const result = await model.generate('hello', { maxTokens: 4, ignoreEos: true });
  expect(result.tokenIds).toHaveLength(4);
  expect(numOpenFiles()).toBe(0);
  await model.dispose();
});

test('a broken chat template fails chats with its error; plain prompts work', async () => {
  const metadata = [{ key: 'tokenizer.chat_template', type: 'string', value: '{% for %}' }] as const;
  const { load } = setUp({ metadata });
  const model = await load();
  await expect(model.generate([{ role: 'user', content: 'hi' }])).rejects.toMatchObject({ code: 'template_error' });
  expect((await model.generate('hi', { maxTokens: 2, ignoreEos: true })).tokenIds).toHaveLength(2);
  await model.dispose();
});

test('a file without a tokenizer fails, and the engine started for it is ended', async () => {
  const { load, transport, numOpenFiles } = setUp({ metadata: [{ key: 'tokenizer.ggml.tokens', value: null }] });
  await expect(load()).rejects.toMatchObject({ code: 'invalid_model_file' });
  expect(transport.isClosed).toBe(true);
  await new Promise((resolve) => setImmediate(resolve));
  expect(numOpenFiles()).toBe(0);
});

test('a context beyond the model is refused before an engine is started', async () => {
  const { load, transport, numOpenFiles } = setUp();
  await expect(load({ maxContext: 1_000_000 })).rejects.toMatchObject({
    code: 'invalid_option',
    data: { option: 'maxContext', maxContext: 1_000_000 },
  });
  expect(transport.sent).toEqual([]);
  expect(numOpenFiles()).toBe(0);
});

test('a context length that cannot be is the fault of the file, not of an option', async () => {
  for (const value of [0, 0.5, -4, NaN]) {
    const { load, numOpenFiles } = setUp({ metadata: [{ key: 'llama.context_length', type: 'f32', value }] });
    await expect(load()).rejects.toMatchObject({ code: 'invalid_model_file' });
    expect(numOpenFiles()).toBe(0);
  }
});

test('with a folder to keep things in, the engine hears of it and sessions are kept under the hash of the model', async () => {
  const { load, transport, records } = setUp();
  const model = await load({ kvSpill: { folder: 'anywhere' } });
  expect(transport.sent[0]).toMatchObject({ type: 'load', spec: { spill: { folder: 'f', limitBytes: 1 } } });
  await model.session('a').generate('hi', { maxTokens: 2, ignoreEos: true });
  expect([...records.keys()]).toEqual(['toy|local|a']);
  await model.dispose();
});
