import { expect, test } from 'vitest';
import { mergeIntoModel } from '../../test/support/merged-model.ts';
import { randomAdapter } from '../../test/support/random-adapter.ts';
import { graniteExperts, type RandomExperts } from '../../test/support/random-experts.ts';
import { buildRandomModel, type RandomArchitecture, type RandomModelOptions } from '../../test/support/random-model.ts';
import { loadBytes, loadRandom, runParts, testLimits } from '../../test/support/run-model.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { type MetadataEntry, openGguf } from '../gguf/index.ts';
import { planPlacement, writePlacement } from '../adapters/index.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { planModel } from './plan-model.ts';

const ids = (length: number): number[] => Array.from({ length }, (_, i) => 3 + ((i * 37) % 300));
const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
const MIXTURE: RandomModelOptions = { architecture: 'qwen3moe', type: 'F32', seed: 5, shape: { numLayers: 2 } };

async function lastLogits(options: Partial<RandomModelOptions>): Promise<Float32Array> {
  const model = await loadRandom({ ...MIXTURE, ...options });
  const rows = await runParts(model, [{ tokenIds: ids(20), start: 0, pageIds: [4, 2] }]);
  await model.dispose();
  return rows.at(-1)!;
}

/** The F32 file with another value in some tensors. */
function change(options: RandomModelOptions, name: RegExp, edit: (value: number, index: number) => number): Uint8Array {
  const bytes = buildRandomModel(options);
  const gguf = openGguf(createMemorySource(bytes));
  for (const tensor of gguf.tensors.values()) {
    if (!name.test(tensor.name)) continue;
    const values = new Uint8Array(tensor.sizeBytes);
    gguf.readTensor(tensor, values);
    const start = Buffer.from(bytes.buffer).indexOf(values);
    const floats = new Float32Array(values.buffer).map(edit);
    bytes.set(new Uint8Array(floats.buffer), start);
  }
  return bytes;
}

const architectures: readonly RandomArchitecture[] = [
  ...(['qwen3moe', 'qwen2moe', 'gpt-oss', 'llama'] as const),
  ...(['granitemoe', 'granitehybrid', 'lfm2moe', 'deepseek2', 'qwen3next'] as const),
];
/** Where the architecture's random file has none. */
const EXPERTS: Partial<Record<RandomArchitecture, RandomExperts>> = {
  llama: { numExperts: 4, numUsed: 2, feedForwardDim: 64 },
  granitehybrid: graniteExperts(8, 64, 96),
};

test.each(architectures)('%s: every tensor of the experts changes the logits', async (architecture) => {
  // The last layer has experts, and hybrids need one with attention.
  const numLayers = ['lfm2moe', 'granitehybrid', 'deepseek2', 'qwen3next'].includes(architecture) ? 2 : 1;
  const experts = EXPERTS[architecture];
  const shape = { numLayers, ...(experts === undefined ? {} : { experts }) };
  const options: RandomModelOptions = { architecture, type: 'F32', seed: 5, shape };
  const logitsOf = async (bytes: Uint8Array): Promise<Float32Array> => {
    const model = await loadBytes(bytes);
    const rows = await runParts(model, [{ tokenIds: ids(20).slice(12), start: 0, pageIds: [4] }]);
    await model.dispose();
    return rows.at(-1)!;
  };
  const bytes = buildRandomModel(options);
  const plain = await logitsOf(bytes);
  const names = [...openGguf(createMemorySource(bytes)).tensors.keys()];
  const parts = names.filter((name) => /exps|gate_inp|shexp|exp_probs|sinks|post_attention_norm/.test(name));
  expect(parts.length).toBeGreaterThanOrEqual(4);
  for (const part of parts) {
    const changed = change(options, new RegExp(`^${part.replaceAll('.', '\\.')}$`), (value, i) => value + (i % 3));
    expect(await logitsOf(changed), part).not.toEqual(plain);
  }
});

test('an expert of twice the weights is chosen alone if the router prefers it', async () => {
  const only = { experts: { numExperts: 1, numUsed: 1, feedForwardDim: 64 }, numLayers: 2 };
  const one = await lastLogits({ shape: only });
  // The weight of a single normalized expert is 1, whatever the router says.
  const bytes = change({ ...MIXTURE, shape: only }, /ffn_gate_inp/, (value) => -value * 3);
  const model = await loadBytes(bytes);
  const rows = await runParts(model, [{ tokenIds: ids(20), start: 0, pageIds: [4, 2] }]);
  expect(rows.at(-1)).toEqual(one);
  await model.dispose();
});

test('the plan has the memory of all experts and of their scratch', async () => {
  const gguf = openGguf(createMemorySource(buildRandomModel(MIXTURE)));
  const plan = planModel(gguf, createReferencePackFactory(), testLimits);
  const experts = plan.weights.filter(({ name }) => /_exps/.test(name));
  expect(experts.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)).toBe(2 * 8 * 3 * 96 * 64 * 4);
  expect(plan.activations.sizes.expertLogits).toBe(testLimits.maxBatchTokens * 8);
  expect(plan.activations.sizes.gate).toBe(0); // no dense layer
  expect(plan.activations.sizes.expertScratch).toBeGreaterThan(testLimits.maxBatchTokens * 3 * (96 + 64));
});

test('an adapter of attention computes the same as merged weights; one of experts is refused with its name', async () => {
  const bytes = buildRandomModel(MIXTURE);
  const limits = { ...testLimits, numPages: 400, kvPrecision: 'f32' as const };
  const model = await loadBytes(bytes, { limits, maxContextTokens: 64 });
  const targets = ['attn_q', 'attn_v', 'attn_output', 'output'] as const;
  const adapter = await randomAdapter(model.shape, { seed: 3, targets });
  const plan = planPlacement(adapter.factors, 40 * model.kv.pageBytes);
  const slabs = Array.from({ length: plan.numSlabs }, (_, i) => model.kv.base + (8 + i * 40) * model.kv.pageBytes);
  model.setAdapter(0, writePlacement(plan, model.pack.arena, slabs));
  const merged = await loadBytes(mergeIntoModel(bytes, [{ adapter, scale: 1 }]), { limits, maxContextTokens: 64 });
  const part = { tokenIds: ids(20), start: 0, pageIds: [4, 2] };
  const logits = (await runParts(model, [{ ...part, adapters: [{ slot: 0, scale: 1 }] }])).at(-1)!;
  const expected = (await runParts(merged, [part])).at(-1)!;
  const size = Math.hypot(...expected) / Math.sqrt(expected.length);
  expect(Math.max(...expected.map((value, i) => Math.abs(value - logits[i]!))) / size).toBeLessThan(2e-4);
  await expect(randomAdapter(model.shape, { seed: 3, targets: ['ffn_up'] })).rejects.toMatchObject({
    code: 'unsupported',
    message: 'adapters of ffn_up are not supported in a mixture of 8 experts; attention and the output are',
  });
  await model.dispose();
  await merged.dispose();
});

const key = (name: string): string => `qwen3moe.${name}`;

test.each<[string, Partial<RandomModelOptions>, string, RegExp]>([
  ['more experts than tensors have', { metadata: [u32(key('expert_count'), 16)] }, 'invalid_model_file', /ffn_gate_inp\.weight has shape \[96, 8\], the model requires \[96, 16\]/],
  ['fewer experts than tensors have', { metadata: [u32(key('expert_count'), 4)] }, 'invalid_model_file', /requires \[96, 4\]/],
  ['an absurd number of experts', { metadata: [u32(key('expert_count'), 4e9)] }, 'invalid_model_file', /expert_count" is 4000000000, must be from 1 to 1024/],
  ['no number of experts', { metadata: [{ key: key('expert_count'), value: null }] }, 'invalid_model_file', /blk\.0\.ffn_gate_inp\.weight belongs to experts, but metadata key "qwen3moe\.expert_count" is missing/],
  ['more used experts than there are', { metadata: [u32(key('expert_used_count'), 9)] }, 'invalid_model_file', /expert_used_count" is 9, must be from 1 to 8/],
  ['no used experts', { metadata: [u32(key('expert_used_count'), 0)] }, 'invalid_model_file', /expert_used_count" is 0/],
  ['another size of experts', { metadata: [u32(key('expert_feed_forward_length'), 32)] }, 'invalid_model_file', /ffn_gate_exps\.weight has shape \[96, 64, 8\], the model requires \[96, 32, 8\]/],
  ['a missing stack', { omit: (name) => name === 'blk.1.ffn_up_exps.weight' }, 'invalid_model_file', /blk\.1\.ffn_up_exps\.weight/],
  ['a missing router', { omit: (name) => name === 'blk.1.ffn_gate_inp.weight' }, 'invalid_model_file', /blk\.1\.ffn_gate_inp\.weight/],
  ['more dense layers than layers', { metadata: [u32(key('leading_dense_block_count'), 2)] }, 'invalid_model_file', /leading_dense_block_count" is 2, must be from 0 to 1/],
  ['rows that are no multiple of 16', { shape: { numLayers: 1, experts: { numExperts: 2, numUsed: 1, feedForwardDim: 24 } } }, 'unsupported', /24 rows per expert, must be a multiple of 16/],
])('rejects %s', async (_, options, code, message) => {
  await expect(loadRandom({ ...MIXTURE, ...options })).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
}); // prettier-ignore

test.each<[string, Partial<RandomModelOptions>, string, RegExp]>([
  ['an unknown kind of scores', { metadata: [u32('deepseek2.expert_gating_func', 9)] }, 'unsupported', /expert_gating_func" is 9, supported are 1/],
  ['more groups than experts', { metadata: [u32('deepseek2.expert_group_count', 9)] }, 'invalid_model_file', /expert_group_count" is 9, must be from 1 to 8/],
  ['groups of different sizes', { metadata: [u32('deepseek2.expert_group_count', 3)] }, 'invalid_model_file', /3 of 8 experts from 2 of 3 groups/],
  ['more used groups than there are', { metadata: [u32('deepseek2.expert_group_used_count', 5)] }, 'invalid_model_file', /expert_group_used_count" is 5, must be from 1 to 4/],
  ['more used experts than the used groups have', { metadata: [u32('deepseek2.expert_group_used_count', 1)] }, 'invalid_model_file', /cannot choose 3 of 8 experts from 1 of 4 groups/],
  ['a negative factor of the weights', { metadata: [{ key: 'deepseek2.expert_weights_scale', type: 'f32', value: -1 }] }, 'invalid_model_file', /expert_weights_scale is -1, must be above 0/],
])('rejects %s', async (_, options, code, message) => {
  const file: RandomModelOptions = { architecture: 'deepseek2', type: 'F32', seed: 5, shape: { numLayers: 2 } };
  await expect(loadRandom({ ...file, ...options })).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
}); // prettier-ignore

test('experts in an architecture without them are refused', async () => {
  const experts = { numExperts: 2, numUsed: 1, feedForwardDim: 64 };
  await expect(
    loadRandom({ architecture: 'qwen3', type: 'F32', seed: 5, shape: { numLayers: 1, experts } }),
  ).rejects.toMatchObject({ code: 'unsupported', message: expect.stringContaining('a mixture of 2 experts') });
});
