import type { MetadataEntry } from '../../types.ts';
import { ATTENTION, GATED, HEAD_NORMS, INPUT_NORMS, RMS, SILU } from '../decoder-modules.ts';
import { type Json, size } from '../hf-config.ts';
import { expertEntries, expertStacks, readExperts } from '../hf-experts.ts';
import { type HfFamily, type HfModel, u32 } from '../hf-family.ts';
import { copyTensor, type HfTensor, weight } from '../hf-tensor.ts';

const EXPERT_KEYS = { count: 'num_experts', used: 'num_experts_per_tok', ffnLength: 'moe_intermediate_size' };
/** Newer configurations have another name for it. */
const withExpertCount = (config: Json): Json => ({ num_experts: config['num_local_experts'], ...config });

/** A router and its experts in every layer, as in all Qwen models with experts. */
export function qwenExperts({ config, shape }: HfModel): HfTensor[] {
  const experts = readExperts(withExpertCount(config), EXPERT_KEYS);
  return [
    ...expertStacks(experts, shape.embeddingLength),
    weight('mlp.gate', 'ffn_gate_inp', [shape.embeddingLength, experts.count]),
  ];
}

/** An expert for every token, with a weight of its own. */
export function qwenSharedExpert({ config, shape }: HfModel): HfTensor[] {
  const dim = size(config, 'shared_expert_intermediate_size');
  const width = shape.embeddingLength;
  return [
    weight('mlp.shared_expert.gate_proj', 'ffn_gate_shexp', [width, dim]),
    weight('mlp.shared_expert.up_proj', 'ffn_up_shexp', [width, dim]),
    weight('mlp.shared_expert.down_proj', 'ffn_down_shexp', [dim, width]),
    copyTensor('mlp.shared_expert_gate.weight', 'ffn_gate_inp_shexp.weight', [width], [1, width]),
  ];
}

export const qwenExpertEntries = ({ config }: HfModel): MetadataEntry[] =>
  expertEntries(readExperts(withExpertCount(config), EXPERT_KEYS));

export const qwenSharedEntries = (model: HfModel): MetadataEntry[] => [
  ...qwenExpertEntries(model),
  u32('expert_shared_feed_forward_length', size(model.config, 'shared_expert_intermediate_size')),
];

/** Settings of models whose layers all have experts. */
export const EVERY_LAYER = { decoder_sparse_step: [1], mlp_only_layers: [[]] };

/** Qwen 2 and 3, dense and with experts. */
export const qwenFamilies: readonly HfFamily[] = [
  {
    modelTypes: ['qwen2'],
    architecture: 'qwen2',
    modules: [...ATTENTION, ...GATED, ...INPUT_NORMS],
    biased: ['attn_q', 'attn_k', 'attn_v'],
    epsilon: RMS,
    settings: { hidden_act: ['silu'], use_sliding_window: [false] },
  },
  {
    modelTypes: ['qwen2_moe'],
    architecture: 'qwen2moe',
    modules: [...ATTENTION, ...INPUT_NORMS],
    biased: ['attn_q', 'attn_k', 'attn_v'],
    layer: (model) => [...qwenExperts(model), ...qwenSharedExpert(model)],
    epsilon: RMS,
    settings: { hidden_act: ['silu'], use_sliding_window: [false], norm_topk_prob: [false], ...EVERY_LAYER },
    entries: qwenSharedEntries,
  },
  {
    modelTypes: ['qwen3'],
    architecture: 'qwen3',
    modules: [...ATTENTION, ...GATED, ...INPUT_NORMS, ...HEAD_NORMS],
    epsilon: RMS,
    settings: { ...SILU, use_sliding_window: [false] },
  },
  {
    modelTypes: ['qwen3_moe'],
    architecture: 'qwen3moe',
    modules: [...ATTENTION, ...INPUT_NORMS, ...HEAD_NORMS],
    layer: qwenExperts,
    epsilon: RMS,
    settings: { ...SILU, use_sliding_window: [false], norm_topk_prob: [true], ...EVERY_LAYER },
    entries: qwenExpertEntries,
  },
];
