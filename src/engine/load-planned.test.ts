import { expect, test } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import { openGguf } from '../gguf/index.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { planModel } from '../models/index.ts';
import { planSpec, resolveModelConfig } from '../runtime/model-config.ts';
import { buildRandomModel } from '../../test/support/random-model.ts';
import { loadPlanned } from './load-planned.ts';
import { planEngine } from './plan-engine.ts';

const factory = createReferencePackFactory();
const shape = { numLayers: 1, vocabSize: 260, contextLength: 256 };
const gguf = openGguf(createMemorySource(buildRandomModel({ architecture: 'llama', type: 'F32', seed: 1, shape })));
const specOf = (config: { kvCacheTokens?: number }) =>
  planSpec(resolveModelConfig(config, { numCpus: 1 }), { path: 'm.gguf', contextLength: 256 }, null);
const spec = specOf({});
const { numPages, leastPages, limitsOf } = planEngine(spec, gguf);
const planOf = (pages: number) => planModel(gguf, factory, limitsOf(pages), spec.maxContext);

/** Bytes of KV pages of the model if arenas up to `fastArenaBytes` are fast. */
async function loadedBytes(fastArenaBytes: number, wishes = spec): Promise<number> {
  const options = { factory: { ...factory, fastArenaBytes }, weightStore: null, onProgress: () => {} };
  const { model } = await loadPlanned(wishes, gguf, options);
  await model.pack.dispose();
  return model.memory.kvBytes;
}

test('space for cached prefixes is given up if the rest fits into fast memory', async () => {
  expect(leastPages).toBeLessThan(numPages);
  const least = planOf(leastPages);
  expect(await loadedBytes(least.totalBytes)).toBe(least.kvBytes);
});

test('it is kept if everything fits, or if nothing does', async () => {
  const most = planOf(numPages);
  expect(await loadedBytes(most.totalBytes)).toBe(most.kvBytes);
  expect(await loadedBytes(planOf(leastPages).totalBytes - 1)).toBe(most.kvBytes);
});

test('pages that the caller asked for are kept', async () => {
  const kvCacheTokens = numPages * 16;
  expect(await loadedBytes(planOf(leastPages).totalBytes, specOf({ kvCacheTokens }))).toBe(planOf(numPages).kvBytes);
});
