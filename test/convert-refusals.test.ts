// Checkpoints that contradict their config.json, or ask for arithmetic that no architecture has.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RuvLLMError } from '../src/core/errors.ts';
import { convertFolder } from '../src/node/convert-folder.ts';
import { writeHfFolder } from './support/hf-folder.ts';
import { buildHfModel, HF_KINDS } from './support/hf-models.ts';
import type { NamedTensor } from './support/safetensors-file.ts';
import { createTemporaryRoot } from './support/temporary-root.ts';

const root = createTemporaryRoot('ruvllm-refused-');

type Edit = (tensors: readonly NamedTensor[]) => readonly NamedTensor[];

/** The error of converting a changed checkpoint; no file is left. */
function refuse(title: string, changes: Record<string, unknown>, edit?: Edit): RuvLLMError {
  const folder = root.newFolder();
  writeHfFolder(folder, buildHfModel(title), HF_KINDS[title]!, edit);
  const configPath = join(folder, 'config.json');
  const config = JSON.parse(readFileSync(configPath, 'utf8')) as Record<string, unknown>;
  const text = config['text_config'] as Record<string, unknown> | undefined;
  const changed = text === undefined ? { ...config, ...changes } : { ...config, text_config: { ...text, ...changes } };
  writeFileSync(configPath, JSON.stringify(changed));
  const path = `${folder}.gguf`;
  try {
    convertFolder({ folder, path, type: 'F32' });
  } catch (error) {
    expect(existsSync(path)).toBe(false);
    if (error instanceof RuvLLMError) return error;
    throw error;
  }
  throw new Error(`${title} with ${JSON.stringify(changes)} was converted`);
}

const without =
  (name: string): Edit =>
  (tensors) =>
    tensors.filter((tensor) => tensor.name !== name);
const changed =
  (name: string, change: (tensor: NamedTensor) => Partial<NamedTensor>): Edit =>
  (tensors) =>
    tensors.map((tensor) => (tensor.name === name ? { ...tensor, ...change(tensor) } : tensor));
const added =
  (tensor: NamedTensor): Edit =>
  (tensors) => [...tensors, tensor];

test('names an unknown architecture and all that are supported', () => {
  const { code, message } = refuse('llama', { model_type: 'mamba' });
  expect(code).toBe('unsupported');
  for (const type of ['llama', 'mixtral', 'qwen3_5_moe', 'gpt_oss', 'deepseek_v3', 'falcon_h1', 'gemma3n', 'bert'])
    expect(message).toMatch(new RegExp(`model_type "mamba" is not supported \\(supported: .*\\b${type}\\b`));
});

const BLOCKS = 'model.layers.0.mlp.experts.gate_up_proj_blocks';
const SCALES = 'model.layers.0.mlp.experts.gate_up_proj_scales';
const NORM = { name: 'model.norm.weight', shape: [96], values: new Float32Array(96) };

test.each<[string, string, Record<string, unknown>, Edit | undefined, string, string]>([
  [
    'fewer experts than configured',
    'qwen3moe',
    { num_experts: 9 },
    undefined,
    'invalid_model_file',
    'says 9 experts, the checkpoint has 8: model.layers.0.mlp.experts.8.gate_proj.weight is the first',
  ],
  [
    'more experts than configured',
    'mixtral',
    { num_local_experts: 3 },
    undefined,
    'invalid_model_file',
    'says 3 experts, the checkpoint has 4: model.layers.0.block_sparse_moe.experts.3.w1.weight is one more',
  ],
  [
    'a missing expert',
    'deepseek2',
    {},
    without('model.layers.1.mlp.experts.5.up_proj.weight'),
    'invalid_model_file',
    'says 8 experts, the checkpoint has 5: model.layers.1.mlp.experts.5.up_proj.weight is the first',
  ],
  [
    'more experts per token than experts',
    'lfm2moe',
    { num_experts_per_tok: 20 },
    undefined,
    'invalid_model_file',
    'num_experts_per_tok is 20, but num_experts only 8',
  ],
  [
    'stacked experts of another number',
    'granitemoe',
    { num_local_experts: 5 },
    undefined,
    'invalid_model_file',
    'input_linear.weight" is 6 x 128 x 96, config.json implies 5 x 128 x 96',
  ],
  [
    'a missing tensor',
    'falcon-h1',
    {},
    without('model.layers.1.mamba.D'),
    'invalid_model_file',
    'tensor "model.layers.1.mamba.D" is missing',
  ],
  [
    'a tensor in both shards',
    'granitehybrid',
    {},
    added({ name: 'model.layers.0.mamba.conv1d.weight', shape: [1], values: new Float32Array(1) }),
    'invalid_model_file',
    '"model.layers.0.mamba.conv1d.weight" is also in an earlier file',
  ],
  [
    'a tensor under two names',
    'qwen35',
    {},
    added(NORM),
    'invalid_model_file',
    '"model.norm.weight" is also in an earlier file',
  ],
  ['an unknown tensor', 'lfm2', {}, added({ ...NORM, name: 'model.extra' }), 'unsupported', '"model.extra" does not'],
  [
    'a filter of another width',
    'lfm2',
    { conv_L_cache: 4 },
    undefined,
    'invalid_model_file',
    'conv.conv.weight" is 96 x 1 x 3, config.json implies 96 x 1 x 4',
  ],
  [
    'packed experts without scales',
    'gpt-oss',
    {},
    without(SCALES),
    'invalid_model_file',
    `tensor "${SCALES}" is missing`,
  ],
  [
    'packed experts of floats',
    'gpt-oss',
    {},
    changed(BLOCKS, ({ values }) => ({ values: new Float32Array(values.length) })),
    'unsupported',
    `tensor "${BLOCKS}" has dtype F32; packed blocks and scales have U8`,
  ],
  [
    'packed experts of another shape',
    'gpt-oss',
    { num_local_experts: 8, intermediate_size: 32 },
    undefined,
    'invalid_model_file',
    `tensor "${BLOCKS}" is 8 x 128 x 3 x 16, config.json implies 8 x 64 x 3 x 16`,
  ],
  [
    'another quantization',
    'qwen3moe',
    { quantization_config: { quant_method: 'fp8' } },
    undefined,
    'unsupported',
    'quantization_config with method "fp8" is not supported (supported: none)',
  ],
  [
    'layers of another pattern',
    'gpt-oss',
    { layer_types: ['full_attention', 'sliding_attention'] },
    undefined,
    'unsupported',
    'layer 0 breaks the rule',
  ],
  [
    'kinds for another number of layers',
    'granitehybrid',
    { layer_types: ['mamba'] },
    undefined,
    'invalid_model_file',
    'layer_types must name the kinds of 2 layers, got a list of 1',
  ],
  [
    'state space heads that do not divide',
    'granitehybrid',
    { mamba_n_heads: 7 },
    undefined,
    'invalid_model_file',
    '192 values do not divide into 7 Mamba heads of 24 and 1 groups',
  ],
  [
    'factors of another number',
    'falcon-h1',
    { ssm_multipliers: [1, 1] },
    undefined,
    'invalid_model_file',
    'ssm_multipliers must be a list of 5 numbers, got a list of 2',
  ],
  [
    'a norm before the gate',
    'falcon-h1',
    { mamba_norm_before_gate: true },
    undefined,
    'unsupported',
    'mamba_norm_before_gate true is not supported (supported: false)',
  ],
  [
    'groups chosen by their best expert',
    'deepseek2',
    { topk_method: 'group_limited_greedy' },
    undefined,
    'unsupported',
    'topk_method "group_limited_greedy" with 4 groups',
  ],
  [
    'two multipliers of rotations',
    'deepseek2',
    { rope_scaling: { type: 'yarn', factor: 4, original_max_position_embeddings: 64, mscale: 2, mscale_all_dim: 1 } },
    undefined,
    'unsupported',
    'mscale 2 with mscale_all_dim 1',
  ],
  [
    'more dense layers than layers',
    'deepseek2',
    { first_k_dense_replace: 2 },
    undefined,
    'invalid_model_file',
    'first_k_dense_replace must be from 0 to 1, got 2',
  ],
  [
    'other constants of YaRN',
    'qwen3',
    { rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 64, beta_fast: 16 } },
    undefined,
    'unsupported',
    'beta_fast 16 is not supported (supported: 32)',
  ],
  [
    'another magnitude of YaRN',
    'qwen3',
    { rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 64, attention_factor: 2 } },
    undefined,
    'unsupported',
    'attention_factor 2 is not supported (supported: 1.138',
  ],
  [
    'value heads that do not divide',
    'qwen3next',
    { linear_num_value_heads: 3 },
    undefined,
    'invalid_model_file',
    '3 value heads over 2 key heads do not divide evenly',
  ],
  [
    'keys and values of different sizes',
    'qwen35moe',
    { linear_value_head_dim: 16 },
    undefined,
    'unsupported',
    'keys of 32 with values of 16',
  ],
  [
    'attention in other layers',
    'qwen3next',
    { full_attention_interval: 4 },
    undefined,
    'unsupported',
    'layer 1 breaks the rule that every 4th layer has attention',
  ],
  [
    'a share of activations above 1',
    'gemma3n',
    { activation_sparsity_pattern: 1.5 },
    undefined,
    'invalid_model_file',
    'activation_sparsity_pattern has 1.5',
  ],
  [
    'feed-forward layers of different lengths',
    'gemma3n',
    { intermediate_size: [160, 161, 160, 160, 160, 160] },
    undefined,
    'invalid_model_file',
    'intermediate_size must be the same in all layers',
  ],
  [
    'more inputs of layers than tokens',
    'gemma3n',
    { vocab_size_per_layer_input: 321 },
    undefined,
    'invalid_model_file',
    'vocab_size_per_layer_input is 321, vocab_size only 320',
  ],
])('refuses %s', (_what, title, changes, edit, code, message) => {
  expect(refuse(title, changes, edit)).toMatchObject({ code, message: expect.stringContaining(message) });
});
