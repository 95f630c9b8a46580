// Checkpoints of every architecture become the model files that hold the same weights.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createMemorySource } from '../src/core/byte-source.ts';
import { type GgufFile, openGguf } from '../src/gguf/index.ts';
import { architectures } from '../src/models/registry.ts';
import { convertFolder } from '../src/node/convert-folder.ts';
import { denseKinds } from './support/hf-dense-kinds.ts';
import { afterRounding, writeHfFolder } from './support/hf-folder.ts';
import { hybridKinds } from './support/hf-hybrid-kinds.ts';
import type { HfKind } from './support/hf-kind.ts';
import { mixtureKinds } from './support/hf-mixture-kinds.ts';
import { graniteExperts } from './support/random-experts.ts';
import { buildRandomModel, type RandomArchitecture, type RandomModelOptions } from './support/random-model.ts';
import { continueGreedily, loadBytes } from './support/run-model.ts';
import { tokenizerModel } from './support/tokenizer-model.ts';
import { createTemporaryRoot } from './support/temporary-root.ts';

const root = createTemporaryRoot('ruvllm-convert-');
const KINDS: Readonly<Record<string, HfKind>> = { ...denseKinds, ...mixtureKinds, ...hybridKinds };

/** Random models whose title is not their architecture, or that need another shape. */
const MODELS: Readonly<Record<string, Partial<RandomModelOptions>>> = {
  mixtral: { architecture: 'llama', shape: { experts: { numExperts: 4, numUsed: 2, feedForwardDim: 160 } } },
  'qwen3moe in stacks': { architecture: 'qwen3moe' },
  // One length is in config.json.
  'gpt-oss': { shape: { feedForwardDim: 64 }, typeOf: (name) => (/_exps\.weight$/.test(name) ? 'MXFP4' : 'F32') },
  'gpt-oss as floats': { architecture: 'gpt-oss', shape: { feedForwardDim: 64 } },
  'deepseek2 without query rank': {
    architecture: 'deepseek2',
    shape: {
      isLite: true,
      experts: {
        numExperts: 6,
        numUsed: 2,
        feedForwardDim: 64,
        sharedDim: 64,
        numDenseLayers: 1,
        keys: { expert_shared_count: 1 },
      },
    },
  },
  'granitehybrid with experts': { architecture: 'granitehybrid', shape: { experts: graniteExperts(8, 64, 96) } },
  'granite in the hybrid family': { architecture: 'granite' },
  // Five layers up to the first without a window.
  gemma3n: { shape: { numLayers: 6 } },
};

function buildModel(title: string): Uint8Array<ArrayBuffer> {
  const { shape, ...options } = MODELS[title] ?? {};
  return buildRandomModel({
    architecture: title as RandomArchitecture,
    type: 'F32',
    seed: 3,
    shape: { numLayers: 2, ...shape },
    // The converter of Llama writes no divisors of frequencies without Llama 3's scaling.
    omit: (name) => name === 'rope_freqs.weight',
    ...options,
  });
}

const open = (bytes: Uint8Array): GgufFile => openGguf(createMemorySource(bytes));

function bytesOf(gguf: GgufFile, name: string): Buffer {
  const tensor = gguf.tensor(name);
  const bytes = Buffer.alloc(tensor.sizeBytes);
  gguf.readTensor(tensor, bytes);
  return bytes;
}

async function generate(bytes: Uint8Array): Promise<{ tokens: number[]; promptLogits: Float32Array[] }> {
  const model = await loadBytes(bytes, { maxContextTokens: 64 });
  const result = await continueGreedily(model, [1, 40, 77, 9, 120, 260], 3, [2]);
  await model.dispose();
  return result;
}

test.each(Object.keys(KINDS))('%s: a checkpoint becomes the file that holds the same weights', async (title) => {
  const kind = KINDS[title]!;
  const original = buildModel(title);
  const expectedBytes = afterRounding(original, kind);
  const folder = root.newFolder();
  writeHfFolder(folder, original, kind);
  writeFileSync(join(folder, 'tokenizer.model'), tokenizerModel(320));
  const path = `${folder}.gguf`;
  const expected = open(expectedBytes);
  const architecture = expected.metadata.string('general.architecture');
  expect(convertFolder({ folder, path, type: 'F32' })).toMatchObject({ architecture, hasTokenizer: true });
  const convertedBytes = readFileSync(path);
  const converted = open(convertedBytes);
  expect([...converted.tensors.keys()].toSorted()).toEqual([...expected.tensors.keys()].toSorted());
  for (const { name, dims, type } of expected.tensors.values()) {
    expect({ name, ...pick(converted.tensor(name)) }).toEqual({ name, dims, type });
    expect(bytesOf(converted, name).equals(bytesOf(expected, name)), name).toBe(true);
  }
  // Norms of another kind are in every random file; the token for unknown text is in no file of the folder.
  const usesLayerNorm = kind.epsilonName === 'layer_norm_eps' || kind.epsilonName === 'norm_epsilon';
  const unused = [usesLayerNorm ? 'layer_norm_rms_epsilon' : 'layer_norm_epsilon', 'unknown_token_id', 'general.name'];
  for (const { key, value } of expected.entries) {
    if (unused.some((name) => key.endsWith(name))) continue;
    const known = typeof value === 'number' ? Math.fround(value) : value;
    const written = converted.metadata.get(key);
    expect(typeof written === 'number' ? Math.fround(written) : written, key).toEqual(known);
  }
  expect(await generate(convertedBytes)).toEqual(await generate(expectedBytes));
});

const pick = ({ dims, type }: { dims: readonly number[]; type: string }) => ({ dims, type });

test('covers every decoder', () => {
  const covered = Object.keys(KINDS).map((title) => MODELS[title]?.architecture ?? title);
  // BERT has a test of its own.
  expect([...architectures.keys()].filter((name) => name !== 'bert' && !covered.includes(name as never))).toEqual([]);
});
