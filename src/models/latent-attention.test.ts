import { expect, test } from 'vitest';
import { randomAdapter } from '../../test/support/random-adapter.ts';
import { buildRandomModel, type RandomModelOptions } from '../../test/support/random-model.ts';
import { continueGreedily, loadBytes, loadRandom, testLimits } from '../../test/support/run-model.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { createMemorySink, type MetadataEntry, openGguf, writeGguf } from '../gguf/index.ts';
import { findModelProblems } from './find-problems.ts';
import { kvPageBytes } from './kv-layout.ts';
import { readValues } from './weight-loader.ts';

const FILE: RandomModelOptions = { architecture: 'deepseek2', type: 'F32', seed: 11 };
const key = (name: string): string => `deepseek2.${name}`;
const u32 = (name: string, value: number): MetadataEntry => ({ key: key(name), type: 'u32', value });
const without = (name: string) => ({ key: key(name), value: null });
const prompt = [1, ...Array.from({ length: 23 }, (_, i) => 3 + ((i * 37) % 300))];
const pageIds = [5, 2, 9];

const LITE = {
  tokens: [46, 183, 264, 89, 217, 46, 183, 193, 319, 268, 138, 199],
  logits: [-1.8601, -0.1198, 4.7419, 4.5879, -0.2931, -2.8255],
};

// llama.cpp's results for a file of 26 layers: it recognizes files without a rank of queries by their number of layers.
test('agrees with llama.cpp for one matrix of keys and values of all heads', async () => {
  const experts = { numExperts: 6, numUsed: 2, feedForwardDim: 64, sharedDim: 64, numDenseLayers: 1 };
  const shape = { numLayers: 26, isLite: true, isStacked: true, experts };
  const model = await loadRandom({ ...FILE, shape }, { maxContextTokens: 256 });
  const { tokens, promptLogits } = await continueGreedily(model, prompt, LITE.tokens.length, pageIds);
  expect(tokens).toEqual(LITE.tokens);
  const last = promptLogits.at(-1)!;
  LITE.logits.forEach((value, i) => expect(Math.abs(last[100 + i]! - value)).toBeLessThan(0.012));
  await model.dispose();
});

test('a page has one row per token for all heads', async () => {
  const model = await loadRandom(FILE);
  // A key of 64 + 16 values, and the same row as its value, in four layers and halves.
  expect(model.shape).toMatchObject({ numKvHeads: 1, headDim: 80 });
  expect(kvPageBytes(model.shape, 'f16')).toBe(4 * 16 * 2 * 80 * 2);
  await model.dispose();
});

/** The same file with all weights as floats. */
function toFloats(bytes: Uint8Array): Uint8Array {
  const gguf = openGguf(createMemorySource(bytes));
  const tensors = [...gguf.tensors.values()].map(({ name, dims }) => {
    const data = new Uint8Array(readValues(gguf, name, dims).buffer);
    return { name, type: 'F32' as const, dims, data };
  });
  const sink = createMemorySink();
  writeGguf({ metadata: gguf.entries, tensors }, sink);
  return sink.toBytes();
}

test('a quantized matrix of all heads is transposed without losing more than a rounding to halves', async () => {
  const typeOf = (name: string) => (name.endsWith('attn_kv_b.weight') ? ('Q8_0' as const) : ('F32' as const));
  const quantized = buildRandomModel({ ...FILE, shape: { isLite: true, isStacked: true }, typeOf });
  const logitsOf = async (bytes: Uint8Array): Promise<Float32Array> => {
    const model = await loadBytes(bytes, { limits: { ...testLimits, kvPrecision: 'f32' } });
    const { promptLogits } = await continueGreedily(model, prompt, 1, pageIds);
    await model.dispose();
    return promptLogits.at(-1)!;
  };
  const [exact, rounded] = [await logitsOf(toFloats(quantized)), await logitsOf(quantized)];
  const difference = Math.hypot(...exact.map((value, i) => value - rounded[i]!));
  // The values' half of the matrix still has 8-bit activations.
  expect(difference / Math.hypot(...exact)).toBeLessThan(0.02);
  expect(difference).toBeGreaterThan(0);
});

test('adapters of latent attention are refused, those of the output are not', async () => {
  const { shape, dispose } = await loadRandom({ ...FILE, shape: { numLayers: 2 } });
  await expect(randomAdapter(shape, { seed: 3, targets: ['attn_q'] })).rejects.toMatchObject({
    code: 'unsupported',
    message: 'adapters of attn_q are not supported with latent attention of rank 64',
  });
  await expect(randomAdapter(shape, { seed: 3, targets: ['output'] })).resolves.toBeDefined();
  await dispose();
});

test.each<[string, Partial<RandomModelOptions>, string, RegExp]>([
  ['no rank', { metadata: [without('attention.kv_lora_rank')] }, 'unsupported', /key size of 80 with a value size of 64/],
  ['an absurd rank', { metadata: [u32('attention.kv_lora_rank', 4e9)] }, 'invalid_model_file', /kv_lora_rank" is 4000000000, must be from 1 to 1024/],
  ['another rank than the tensors have', { metadata: [u32('attention.kv_lora_rank', 32)] }, 'invalid_model_file', /attn_kv_a_mqa\.weight has shape \[96, 80\], the model requires \[96, 48\]/],
  ['another rank of queries', { metadata: [u32('attention.q_lora_rank', 32)] }, 'invalid_model_file', /attn_q_b\.weight has shape \[64, 288\], the model requires \[32, 288\]/],
  ['keys without values that are not rotated', { metadata: [u32('attention.key_length_mla', 16)] }, 'invalid_model_file', /keys of 16 values with 16 rotated ones/],
  ['another size of values', { metadata: [u32('attention.value_length_mla', 16)] }, 'invalid_model_file', /attn_v_b\.weight has shape \[64, 32, 6\], the model requires \[64, 16, 6\]/],
  ['a missing matrix of heads', { omit: (name) => name === 'blk.1.attn_k_b.weight' }, 'invalid_model_file', /blk\.1\.attn_k_b\.weight/],
  ['more heads than kernels share a row with', { shape: { numLayers: 2, numHeads: 65 } }, 'unsupported', /65 heads share one latent row, at most 64/],
  ['scores scaled by position', { metadata: [{ key: key('attention.temperature_scale'), type: 'f32', value: 0.1 }] }, 'unsupported', /temperature_scale/],
  ['an endless multiplier', { metadata: [{ key: key('rope.scaling.yarn_log_multiplier'), type: 'f32', value: NaN }] }, 'invalid_model_file', /yarn_log_multiplier is NaN/],
])('rejects %s', async (_, options, code, message) => {
  await expect(loadRandom({ ...FILE, shape: { numLayers: 2 }, ...options })).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
}); // prettier-ignore

test('all missing tensors are named at once', () => {
  const bytes = buildRandomModel({ ...FILE, omit: (name) => /blk\.2\.attn_(v_b|q_a_norm|kv_a_mqa)/.test(name) });
  const problems = findModelProblems(openGguf(createMemorySource(bytes)));
  expect(problems.map(({ message }) => /blk\.2\.\S+?\.weight/.exec(message)?.[0])).toEqual([
    'blk.2.attn_kv_a_mqa.weight',
    'blk.2.attn_q_a_norm.weight',
    'blk.2.attn_v_b.weight',
  ]);
});
