import { describe, expect, test } from 'vitest';
import { buildRandomModel, type RandomModelOptions } from '../../test/support/random-model.ts';
import { continueGreedily, loadRandom, runParts, testLimits } from '../../test/support/run-model.ts';
import { targetShape } from '../adapters/index.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { type MetadataEntry, openGguf } from '../gguf/index.ts';
import { kvLayerBytes } from '../kernels/contract.ts';
import { createNativePackFactory } from '../kernels/native/native-pack.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { createWasmPackFactory } from '../kernels/wasm/wasm-pack.ts';
import { loadNativeBuilds } from '../platform/node/kernels/native-addon.ts';
import { createNodeWasmPlatform } from '../platform/node/kernels/wasm-platform.ts';
import { loadModel } from './load-model.ts';
import { planModel } from './plan-model.ts';
import { readShape } from './shape.ts';

/** Nine layers: every third has no window, one key/value head of 64 instead of two of 32; the last three share keys. */
const FILE: RandomModelOptions = { architecture: 'gemma4', type: 'F32', seed: 11 };
const MIXTURE: RandomModelOptions = {
  ...FILE,
  shape: { numLayers: 3, experts: { numExperts: 8, numUsed: 3, feedForwardDim: 64 } },
};
const u32 = (name: string, value: number): MetadataEntry => ({ key: `gemma4.${name}`, type: 'u32', value });
const list = (name: string, value: readonly number[]): MetadataEntry => ({
  key: `gemma4.${name}`,
  type: 'array<i32>',
  value: Int32Array.from(value),
});
const changed = (...metadata: NonNullable<RandomModelOptions['metadata']>): RandomModelOptions => ({
  ...FILE,
  metadata,
});
const openRandom = (options: RandomModelOptions) => openGguf(createMemorySource(buildRandomModel(options)));
const tokenIds = Array.from({ length: 20 }, (_, i) => 3 + ((i * 37) % 300));
const lastLogits = async (options: RandomModelOptions): Promise<Float32Array> => {
  const model = await loadRandom(options);
  const rows = await runParts(model, [{ tokenIds, start: 0, pageIds: [4, 1] }]);
  await model.dispose();
  return rows.at(-1)!;
};

test('a page has the heads of each layer with keys of its own', async () => {
  const model = await loadRandom(FILE);
  expect(model.shape).toMatchObject({ numLayers: 9, numKvLayers: 6, headDim: 64, numKvHeads: 2, feedForwardDim: 320 });
  expect(model.shape.layerSizes!.map(({ headDim }) => headDim)).toEqual([32, 32, 64, 32, 32, 64, 32, 32, 64]);
  expect(model.kv.pageBytes).toBe(4 * kvLayerBytes(2, 32, 'f16') + 2 * kvLayerBytes(1, 64, 'f16'));
  await model.dispose();
});

test.each([
  ['dense', FILE],
  ['mixture', MIXTURE],
])('chunks and batches give the same bits as a whole prompt alone: %s', async (_, options) => {
  const model = await loadRandom(options);
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

const builds = loadNativeBuilds();
if (builds.length === 0) console.log('skipped native kernels: not built here (npm run build:native)');
describe.each([
  ['wasm relaxed-simd', createWasmPackFactory(createNodeWasmPlatform(['relaxed-simd']))] as const,
  ...builds.slice(0, 1).map((build) => [`native ${build.build}`, createNativePackFactory(build)] as const),
])('%s', (_, factory) => {
  test.each([
    ['heads of 256 and 512, as in published models', { ...FILE, shape: { headDim: 256, numLayers: 3 } }],
    ['a mixture', MIXTURE],
  ])('computes the logits of the reference: %s', async (_what, options) => {
    const model = await loadModel(openRandom(options), factory, { limits: testLimits });
    const rows = await runParts(model, [{ tokenIds, start: 0, pageIds: [4, 1] }]);
    const expected = await lastLogits(options);
    const size = Math.sqrt(expected.reduce((sum, value) => sum + value ** 2, 0));
    const difference = Math.sqrt(expected.reduce((sum, value, i) => sum + (value - rows.at(-1)![i]!) ** 2, 0));
    // GELU rounds to halves.
    expect(difference / size).toBeLessThan(1e-3);
    await model.dispose();
  });
});

test('a layer that shares keys ignores its own matrices of keys and values', async () => {
  const isUnused = (name: string): boolean => /^blk\.[678]\.attn_(k|v|k_norm)\.weight$/.test(name);
  expect(await lastLogits({ ...FILE, omit: isUnused })).toEqual(await lastLogits(FILE));
});

test('a layer without a matrix of values uses its keys before their norm', async () => {
  const keys = 'blk.2.attn_k.weight';
  const explicit = await lastLogits({ ...FILE, copies: { 'blk.2.attn_v.weight': keys } });
  expect(explicit).toEqual(await lastLogits(FILE));
});

test.each<[string, RandomModelOptions]>([
  ['the scale of a layer', { ...FILE, vectors: { 'blk.4.layer_output_scale.weight': Float32Array.of(0.5) } }],
  ['no scale of a layer', { ...FILE, omit: (name) => name === 'blk.4.layer_output_scale.weight' }],
  ['the factors of rotations', { ...FILE, vectors: { 'rope_freqs.weight': new Float32Array(32).fill(1) } }],
  ['the rotation of windowed layers', changed(u32('rope.dimension_count_swa', 16))],
  ['the cap of logits', changed({ key: 'gemma4.final_logit_softcapping', type: 'f32', value: 5 })],
])('computes with %s', async (_, options) => {
  expect(await lastLogits(options)).not.toEqual(await lastLogits(FILE));
});

test.each<[string, RandomModelOptions]>([
  ['scales of experts', { ...MIXTURE, omit: (name) => name === 'blk.1.ffn_down_exps.scale' }],
  ['the scale of the router', { ...MIXTURE, vectors: { 'blk.1.ffn_gate_inp.scale': new Float32Array(96).fill(1) } }],
])('a mixture computes with %s', async (_, options) => {
  expect(await lastLogits(options)).not.toEqual(await lastLogits(MIXTURE));
});

test('adapters have the size of their layer, and none changes values that are keys', () => {
  const shape = readShape(openRandom(FILE));
  expect(targetShape('attn_q', shape, 0)).toEqual({ numCols: 96, numRows: 128 });
  expect(targetShape('attn_q', shape, 2)).toEqual({ numCols: 96, numRows: 256 });
  expect(targetShape('attn_k', shape, 2)).toEqual({ numCols: 96, numRows: 64 });
  expect(targetShape('ffn_down', shape, 8)).toEqual({ numCols: 320, numRows: 96 });
  expect(() => targetShape('attn_v', shape, 2)).toThrowError(
    expect.objectContaining({ code: 'unsupported', data: { target: 'attn_v', layer: 2 } }),
  );
});

test.each<[string, RandomModelOptions, RegExp]>([
  [
    'a head size that does not match the tensors',
    changed(
      ...['attention.key_length', 'attention.value_length', 'rope.dimension_count'].map((name) =>
        u32(`${name}_swa`, 16),
      ),
    ),
    /blk\.0\.attn_q\.weight has shape \[96, 128\], the model requires \[96, 64\]/,
  ],
  [
    'heads that do not match the tensors',
    changed(list('attention.head_count_kv', [2, 2, 2, 2, 2, 1, 2, 2, 1])),
    /blk\.2\.attn_k\.weight has shape \[96, 64\], the model requires \[96, 128\]/,
  ],
  [
    'a feed-forward size that does not match the tensors',
    changed(u32('feed_forward_length', 160)),
    /blk\.6\.ffn_gate\.weight has shape \[96, 320\], the model requires \[96, 160\]/,
  ],
  [
    'too few counts of heads',
    changed(list('attention.head_count_kv', [2, 2, 1])),
    /head_count_kv" lists 3 numbers, the model has 9 layers/,
  ],
  [
    'heads that do not divide',
    changed(list('attention.head_count_kv', [2, 2, 3, 2, 2, 1, 2, 2, 1])),
    /layer 2 has 4 heads of 64 over 3 key\/value heads, which do not divide evenly/,
  ],
  [
    'a negative count of heads',
    changed(list('attention.head_count_kv', [2, 2, -1, 2, 2, 1, 2, 2, 1])),
    /head_count_kv" lists -1, must be from 1 to 1024/,
  ],
  [
    'an absurd head size',
    changed(u32('attention.key_length_swa', 1e6)),
    /key_length_swa" is 1000000, must be from 1 to 1024/,
  ],
  ['an odd rotation', changed(u32('rope.dimension_count_swa', 15)), /dimension_count_swa" is 15, must be even/],
  [
    'a rotation beyond the head',
    changed(u32('rope.dimension_count_swa', 64)),
    /dimension_count_swa" is 64, must be from 1 to 32/,
  ],
  [
    'all layers sharing keys',
    changed(u32('attention.shared_kv_layers', 9)),
    /shared_kv_layers" is 9, must be from 0 to 8/,
  ],
  [
    'sharing without a source of the same kind',
    changed(u32('attention.shared_kv_layers', 7)),
    /layer 2 shares keys and values, but none of the first 2 layers is one without a window/,
  ],
  ['no windows', changed({ key: 'gemma4.attention.sliding_window_pattern', value: null }), /sliding_window_pattern/],
  [
    'too few windows',
    changed({ key: 'gemma4.attention.sliding_window_pattern', type: 'array<bool>', value: [true, false] }),
    /sliding_window_pattern lists 2 layers, the model has 9/,
  ],
  [
    'layer inputs of another width',
    changed(u32('embedding_length_per_layer_input', 64)),
    /per_layer_token_embd\.weight has shape \[288, 320\], the model requires \[576, 320\]/,
  ],
  [
    'a scale of more than one value',
    { ...FILE, vectors: { 'blk.0.layer_output_scale.weight': new Float32Array(2) } },
    /layer_output_scale\.weight has shape \[2\], the model requires \[1\]/,
  ],
  [
    'scales of too few experts',
    { ...MIXTURE, vectors: { 'blk.0.ffn_down_exps.scale': new Float32Array(4) } },
    /ffn_down_exps\.scale has shape \[4\], the model requires \[8\]/,
  ],
  [
    'experts of another size',
    { ...MIXTURE, metadata: [u32('expert_feed_forward_length', 32)] },
    /ffn_gate_up_exps\.weight has shape \[96, 128, 8\], the model requires \[96, 64, 8\]/,
  ],
])('rejects %s', (_what, options, message) => {
  expect(() => planModel(openRandom(options), createReferencePackFactory(), testLimits)).toThrowError(
    expect.objectContaining({ code: 'invalid_model_file', message: expect.stringMatching(message) }),
  );
});

test.each<[string, RandomModelOptions, RegExp]>([
  [
    'values of another size than keys in windowed layers',
    changed(u32('attention.value_length_swa', 64)),
    /value_length_swa" is 64, but keys of layers with a window have 32 values/,
  ],
  [
    'layers of different sizes in another architecture',
    {
      architecture: 'llama',
      type: 'F32',
      seed: 1,
      shape: { numLayers: 2 },
      metadata: [{ key: 'llama.feed_forward_length', type: 'array<i32>', value: Int32Array.of(160, 320) }],
    },
    /llama: key\/value heads and feed-forward size differ between layers \(layer 0 has 2 x 16, 160, layer 1 2 x 16, 320\)/,
  ],
])('does not support %s', (_what, options, message) => {
  expect(() => planModel(openRandom(options), createReferencePackFactory(), testLimits)).toThrowError(
    expect.objectContaining({ code: 'unsupported', message: expect.stringMatching(message) }),
  );
});

test('rejects vectors instead of tokens where layers have inputs of their own', async () => {
  const model = await loadRandom(FILE);
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
