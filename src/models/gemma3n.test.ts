import { expect, test } from 'vitest';
import { buildRandomModel, type RandomModelOptions } from '../../test/support/random-model.ts';
import { continueGreedily, loadRandom, runParts, testLimits } from '../../test/support/run-model.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { type MetadataEntry, openGguf } from '../gguf/index.ts';
import { kvLayerBytes } from '../kernels/contract.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { planModel } from './plan-model.ts';

const FILE: RandomModelOptions = { architecture: 'gemma3n', type: 'F32', seed: 11 };
const u32 = (name: string, value: number): MetadataEntry => ({ key: `gemma3n.${name}`, type: 'u32', value });
const floats = (name: string, value: number[]): MetadataEntry => ({
  key: `gemma3n.${name}`,
  type: 'array<f32>',
  value: Float32Array.from(value),
});
const small = (...metadata: MetadataEntry[]): RandomModelOptions => ({ ...FILE, shape: { numLayers: 7 }, metadata });
const tokenIds = Array.from({ length: 20 }, (_, i) => 3 + ((i * 37) % 300));
const lastLogits = async (options: RandomModelOptions): Promise<Float32Array> => {
  const model = await loadRandom(options);
  const rows = await runParts(model, [{ tokenIds, start: 0, pageIds: [4, 1] }]);
  await model.dispose();
  return rows.at(-1)!;
};

test('only layers with keys of their own have pages', async () => {
  const model = await loadRandom(FILE);
  expect(model.shape).toMatchObject({ numLayers: 25, numKvLayers: 20 });
  expect(model.kv.pageBytes).toBe(20 * kvLayerBytes(2, 32, 'f16'));
  await model.dispose();
});

test('chunks and batches give the same bits as a whole prompt alone', async () => {
  const model = await loadRandom(small(u32('attention.shared_kv_layers', 2)));
  const whole = await runParts(model, [{ tokenIds, start: 0, pageIds: [4, 1] }]);
  const [first, rest] = [tokenIds.slice(0, 7), tokenIds.slice(7)];
  const other = { tokenIds: [9, 8, 7], start: 0, pageIds: [6] };
  const head = await runParts(model, [other, { tokenIds: first, start: 0, pageIds: [2, 3] }]);
  const tail = await runParts(model, [
    { tokenIds: rest, start: 7, pageIds: [2, 3] },
    { ...other, pageIds: [7] },
  ]);
  expect([...head.slice(3), ...tail.slice(0, rest.length)]).toEqual(whole);
  await model.dispose();
});

test('a layer that shares keys ignores its own matrices of keys and values', async () => {
  const shared = small(u32('attention.shared_kv_layers', 2));
  const isUnused = (name: string): boolean => /^blk\.[56]\.attn_(k|v|k_norm)\.weight$/.test(name);
  const plain = await lastLogits(shared);
  expect(await lastLogits({ ...shared, omit: isUnused })).toEqual(plain);
  expect(await lastLogits(small(u32('attention.shared_kv_layers', 0)))).not.toEqual(plain);
});

test('the file lists the layers with sparse activations; by default the first ten have them', async () => {
  const byDefault = await lastLogits(small());
  const threshold = Math.fround(1.6448533535003662);
  const all = Array.from({ length: 7 }, () => threshold);
  expect(await lastLogits(small(floats('activation_sparsity_scale', all)))).toEqual(byDefault);
  const none = all.map(() => -Infinity);
  expect(await lastLogits(small(floats('activation_sparsity_scale', none)))).not.toEqual(byDefault);
});

test('computes the stream that the file names', async () => {
  expect(await lastLogits(small(u32('altup.active_idx', 1)))).not.toEqual(await lastLogits(small()));
});

test.each<[string, RandomModelOptions, RegExp]>([
  ['a stream beyond the last', small(u32('altup.active_idx', 4)), /active_idx is 4, must be from 0 to 3/],
  [
    'all layers sharing keys',
    small(u32('attention.shared_kv_layers', 7)),
    /shared_kv_layers" is 7, must be from 0 to 6/,
  ],
  [
    'sharing without a source of the same kind',
    small(u32('attention.shared_kv_layers', 4)),
    /layer 4 shares keys and values, but none of the first 3 layers is one without a window/,
  ],
  ['too few thresholds', small(floats('activation_sparsity_scale', [1, 1])), /has 2 values, the model has 7 layers/],
  ['a threshold of NaN', small(floats('activation_sparsity_scale', [1, NaN, 1, 1, 1, 1, 1])), /NaN for layer 1/],
  [
    'no table of layer inputs',
    { ...small(), omit: (name) => name === 'per_layer_token_embd.weight' },
    /per_layer_token/,
  ],
  [
    'layer inputs of another width',
    small(u32('embedding_length_per_layer_input', 128)),
    /per_layer_token_embd\.weight has shape \[1792, 320\], the model requires \[896, 320\]/,
  ],
])('rejects %s', (_what, options, message) => {
  const gguf = openGguf(createMemorySource(buildRandomModel(options)));
  expect(() => planModel(gguf, createReferencePackFactory(), testLimits)).toThrowError(
    expect.objectContaining({ code: 'invalid_model_file', message: expect.stringMatching(message) }),
  );
});

test('rejects vectors instead of tokens', async () => {
  const model = await loadRandom(small());
  const step = {
    tokenIds: [0],
    positions: [0],
    slots: [0],
    sequences: [{ firstRow: 0, numRows: 1, contextTokens: 1, pageIds: [0] }],
    logitRows: [0],
    vectors: [{ firstRow: 0, values: new Float32Array(model.shape.embeddingDim) }],
  };
  await expect(model.forward(step)).rejects.toMatchObject({ code: 'unsupported' });
  await continueGreedily(model, [1, 2, 3], 1, [5]);
  await model.dispose();
});
