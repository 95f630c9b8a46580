import { invalidFile, unsupportedFile } from '../../failures.ts';
import type { MetadataEntry } from '../../types.ts';
import { INPUT_NORMS, RMS } from '../decoder-modules.ts';
import { type Json, positive, show, size, wholeNumber } from '../hf-config.ts';
import { ropeSettings } from '../hf-decoder-shape.ts';
import { expertEntries, expertStacks, readExperts } from '../hf-experts.ts';
import { bool, f32, type HfFamily, type HfModel, u32 } from '../hf-family.ts';
import { copyTensor, type HfTensor, rowsOf, weight } from '../hf-tensor.ts';
import { pickRows, transposeMatrices } from '../value-reader.ts';

const EXPERT_KEYS = { count: 'n_routed_experts', used: 'num_experts_per_tok', ffnLength: 'moe_intermediate_size' };
/** Numbers of the router's scores in files. */
const GATING = { softmax: 1, sigmoid: 2 } as const;

/** The dimensions of latent attention. */
const readLatent = (config: Json) => ({
  rank: size(config, 'kv_lora_rank'),
  queryRank: config['q_lora_rank'] === undefined || config['q_lora_rank'] === null ? 0 : size(config, 'q_lora_rank'),
  rotary: size(config, 'qk_rope_head_dim'),
  plain: size(config, 'qk_nope_head_dim'),
  value: size(config, 'v_head_dim'),
});

function attentionTensors({ config, shape }: HfModel): HfTensor[] {
  const { embeddingLength: dim, numHeads } = shape;
  const { rank, queryRank, rotary, plain, value } = readLatent(config);
  const queryRows = numHeads * (plain + rotary);
  const query =
    queryRank === 0
      ? [weight('self_attn.q_proj', 'attn_q', [dim, queryRows])]
      : [
          weight('self_attn.q_a_proj', 'attn_q_a', [dim, queryRank]),
          weight('self_attn.q_a_layernorm', 'attn_q_a_norm', [queryRank]),
          weight('self_attn.q_b_proj', 'attn_q_b', [queryRank, queryRows]),
        ];
  // Of each head the rows of its key, which files have transposed, and those of its value.
  const stacked = 'self_attn.kv_b_proj.weight';
  const shapeOfBoth = [numHeads * (plain + value), rank];
  const rowsOfHeads = (length: number, offset: number) => (row: number) =>
    Math.floor(row / length) * (plain + value) + offset + (row % length);
  const keys: HfTensor = {
    to: 'attn_k_b.weight',
    dims: [plain, rank, numHeads],
    read: (source) => {
      const rows = pickRows(source.values(stacked, shapeOfBoth), rank, rowsOfHeads(plain, 0));
      return transposeMatrices(rows, { count: numHeads, numRows: plain, numCols: rank });
    },
  };
  return [
    ...query,
    weight('self_attn.kv_a_proj_with_mqa', 'attn_kv_a_mqa', [dim, rank + rotary]),
    weight('self_attn.kv_a_layernorm', 'attn_kv_a_norm', [rank]),
    keys,
    rowsOf(stacked, shapeOfBoth, 'attn_v_b.weight', [rank, value, numHeads], rowsOfHeads(value, plain)),
    weight('self_attn.o_proj', 'attn_output', [numHeads * value, dim]),
  ];
}

function feedForward({ config, shape }: HfModel, layer: number): HfTensor[] {
  const dim = shape.embeddingLength;
  const network = (at: string, suffix: string, length: number): HfTensor[] => [
    weight(`${at}.gate_proj`, `ffn_gate${suffix}`, [dim, length]),
    weight(`${at}.up_proj`, `ffn_up${suffix}`, [dim, length]),
    weight(`${at}.down_proj`, `ffn_down${suffix}`, [length, dim]),
  ];
  if (layer < numDenseLayers(config, shape.numLayers)) return network('mlp', '', shape.ffnLength);
  const experts = readExperts(config, EXPERT_KEYS);
  const numShared = countShared(config);
  return [
    ...expertStacks(experts, dim),
    weight('mlp.gate', 'ffn_gate_inp', [dim, experts.count]),
    ...(hasChoiceBias(config)
      ? [copyTensor('mlp.gate.e_score_correction_bias', 'exp_probs_b.bias', [experts.count])]
      : []),
    ...(numShared === 0 ? [] : network('mlp.shared_experts', '_shexp', numShared * experts.ffnLength)),
  ];
}

const hasExperts = (config: Json): boolean => wholeNumber(config, 'n_routed_experts', 0) > 0;
const isSecond = (config: Json): boolean => config['model_type'] === 'deepseek_v2';
const hasChoiceBias = (config: Json): boolean =>
  (config['topk_method'] ?? (isSecond(config) ? '' : 'noaux_tc')) === 'noaux_tc';
const countShared = (config: Json): number => wholeNumber(config, 'n_shared_experts', 0);

/** Newer files of GLM name the kind of every layer. */
function numDenseLayers(config: Json, numLayers: number): number {
  if (!hasExperts(config)) return numLayers;
  const types: unknown = config['mlp_layer_types'];
  const numListed = Array.isArray(types) ? types.findIndex((type) => type !== 'dense') : 0;
  if (Array.isArray(types) && types.slice(numListed).includes('dense'))
    unsupportedFile('config.json: mlp_layer_types with a dense layer after one with experts is not supported');
  const count = wholeNumber(config, 'first_k_dense_replace', numListed);
  if (count >= 0 && count < numLayers) return count;
  return invalidFile(`config.json: first_k_dense_replace must be from 0 to ${numLayers - 1}, got ${count}`);
}

function routerEntries({ config, shape }: HfModel): MetadataEntry[] {
  if (!hasExperts(config)) return [];
  const experts = readExperts(config, EXPERT_KEYS);
  const scores = config['scoring_func'] ?? (isSecond(config) ? 'softmax' : 'sigmoid');
  if (scores !== 'softmax' && scores !== 'sigmoid')
    unsupportedFile(`config.json: scoring_func ${show(scores)} is not supported (supported: softmax, sigmoid)`);
  const numGroups = size(config, 'n_group', 1);
  // There a group is chosen by its best expert, in files by its two best.
  if (numGroups > 1 && config['topk_method'] === 'group_limited_greedy')
    unsupportedFile(`config.json: topk_method "group_limited_greedy" with ${numGroups} groups is not supported`);
  return [
    ...expertEntries(experts),
    u32('expert_shared_count', countShared(config)),
    ...(countShared(config) === 0
      ? []
      : [u32('expert_shared_feed_forward_length', countShared(config) * experts.ffnLength)]),
    u32('leading_dense_block_count', numDenseLayers(config, shape.numLayers)),
    u32('expert_gating_func', GATING[scores]),
    bool('expert_weights_norm', config['norm_topk_prob'] === true),
    f32('expert_weights_scale', positive(config, 'routed_scaling_factor', 1)),
    ...(numGroups === 1
      ? []
      : [u32('expert_group_count', numGroups), u32('expert_group_used_count', size(config, 'topk_group'))]),
  ];
}

/** One row for all heads is cached: the latent vector and the rotated part of the key. */
function latentEntries({ config }: HfModel): MetadataEntry[] {
  const { rank, queryRank, rotary, plain, value } = readLatent(config);
  const scaling = ropeSettings(config);
  const multiplier = scaling['mscale_all_dim'];
  if (multiplier !== undefined && multiplier !== (scaling['mscale'] ?? 1))
    unsupportedFile(
      `config.json: mscale ${show(scaling['mscale'])} with mscale_all_dim ${show(multiplier)} is not supported`,
    );
  return [
    u32('attention.value_length', rank),
    u32('attention.key_length_mla', plain + rotary),
    u32('attention.value_length_mla', value),
    u32('attention.kv_lora_rank', rank),
    ...(queryRank === 0 ? [] : [u32('attention.q_lora_rank', queryRank)]),
    // Files have a tenth of it.
    ...(multiplier === undefined
      ? []
      : [f32('rope.scaling.yarn_log_multiplier', 0.1 * positive(scaling, 'mscale_all_dim'))]),
  ];
}

/** DeepSeek V2 and V3, and models with their layers: latent attention, experts after some dense layers. */
const common: Omit<HfFamily, 'modelTypes'> = {
  architecture: 'deepseek2',
  normalize: (config) => ({
    rms_norm_eps: 1e-6,
    ...config,
    num_key_value_heads: 1,
    head_dim: size(config, 'kv_lora_rank') + size(config, 'qk_rope_head_dim'),
    rotary_length: size(config, 'qk_rope_head_dim'),
  }),
  modules: INPUT_NORMS,
  layer: (model, layer) => [...attentionTensors(model), ...feedForward(model, layer)],
  epsilon: RMS,
  hasGuessingLayers: true,
  settings: { hidden_act: ['silu'], attention_bias: [false], moe_layer_freq: [1], rope_interleave: [true] },
  entries: (model) => [...latentEntries(model), ...routerEntries(model)],
};

/** With the splitting rules of their vocabularies. */
export const deepseek2Families: readonly HfFamily[] = [
  { ...common, modelTypes: ['deepseek_v2'], preTokenizer: 'deepseek-llm' },
  { ...common, modelTypes: ['deepseek_v3'], preTokenizer: 'deepseek-v3' },
  { ...common, modelTypes: ['glm4_moe_lite'], preTokenizer: 'glm4' },
];
