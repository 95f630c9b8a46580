import type { MetadataEntry } from '../../types.ts';
import { QKV, width } from '../decoder-modules.ts';
import { type Json, layerTypes, positive, size, wholeNumber } from '../hf-config.ts';
import { expertEntries, expertStacks, readExperts } from '../hf-experts.ts';
import { type HfFamily, type HfModel, u32 } from '../hf-family.ts';
import { copyTensor, type HfTensor, weight } from '../hf-tensor.ts';

const EXPERT_KEYS = { count: 'num_experts', used: 'num_experts_per_tok', ffnLength: 'moe_intermediate_size' };
const isAttention = ({ config, shape }: HfModel, layer: number): boolean =>
  layerTypes(config, shape.numLayers)[layer] === 'full_attention';
const numDenseLayers = (config: Json): number => wholeNumber(config, 'num_dense_layers', 2);
const convWidth = (config: Json): number => size(config, 'conv_L_cache');

/** Attention, or a gated convolution over the last few tokens. */
function mixer(model: HfModel, layer: number): HfTensor[] {
  const { config, shape } = model;
  const { embeddingLength: dim, headLength, numHeads } = shape;
  if (isAttention(model, layer)) {
    return [
      ...QKV.map(([from, to, dims]) => weight(from, to, dims(shape))),
      weight('self_attn.out_proj', 'attn_output', [numHeads * headLength, dim]),
      weight('self_attn.q_layernorm', 'attn_q_norm', [headLength]),
      weight('self_attn.k_layernorm', 'attn_k_norm', [headLength]),
    ];
  }
  const length = convWidth(config);
  return [
    weight('conv.in_proj', 'shortconv.in_proj', [dim, 3 * dim]),
    weight('conv.out_proj', 'shortconv.out_proj', [dim, dim]),
    copyTensor('conv.conv.weight', 'shortconv.conv.weight', [length, dim], [dim, 1, length]),
  ];
}

const feedForward = ({ shape }: HfModel): HfTensor[] => [
  weight('feed_forward.w1', 'ffn_gate', [shape.embeddingLength, shape.ffnLength]),
  weight('feed_forward.w3', 'ffn_up', [shape.embeddingLength, shape.ffnLength]),
  weight('feed_forward.w2', 'ffn_down', [shape.ffnLength, shape.embeddingLength]),
];

function experts({ config, shape }: HfModel): HfTensor[] {
  const mixture = readExperts(config, EXPERT_KEYS);
  const names = { at: 'feed_forward.experts', gate: 'w1', down: 'w2', up: 'w3' };
  return [
    ...expertStacks(mixture, shape.embeddingLength, names),
    weight('feed_forward.gate', 'ffn_gate_inp', [shape.embeddingLength, mixture.count]),
    copyTensor('feed_forward.expert_bias', 'exp_probs_b.bias', [mixture.count]),
  ];
}

const mixerEntries = (model: HfModel): MetadataEntry[] => [
  {
    key: 'attention.head_count_kv',
    type: 'array<i32>',
    value: Int32Array.from({ length: model.shape.numLayers }, (_, layer) =>
      isAttention(model, layer) ? model.shape.numKvHeads : 0,
    ),
  },
  u32('shortconv.l_cache', convWidth(model.config)),
];

/** Values that config.json may leave out; older ones list the layers with attention. */
function withDefaults(config: Json): Json {
  const layers: unknown = config['full_attn_idxs'];
  const listed = Array.isArray(layers)
    ? {
        layer_types: Array.from({ length: size(config, 'num_hidden_layers') }, (_, layer) =>
          layers.includes(layer) ? 'full_attention' : 'conv',
        ),
      }
    : {};
  return { rope_theta: 1_000_000, ...listed, ...config };
}

/** The configured length is a start: two thirds of it, times a factor, rounded up to a multiple. */
function adjustLength(config: Json): Json {
  const length = size(config, 'block_ff_dim', size(config, 'intermediate_size', 1));
  if (config['block_auto_adjust_ff_dim'] !== true) return { ...config, intermediate_size: length };
  const factor = positive(config, 'block_ffn_dim_multiplier', 1);
  const multiple = size(config, 'block_multiple_of', 1);
  const rounded = Math.ceil(Math.floor(factor * Math.floor((2 * length) / 3)) / multiple) * multiple;
  return { ...config, intermediate_size: rounded };
}

const common = {
  modules: [
    ['operator_norm', 'attn_norm', width],
    ['ffn_norm', 'ffn_norm', width],
  ],
  // The final norm has the name of the embedding's in files of this family.
  ends: (ends: readonly HfTensor[]) =>
    ends.map((tensor) => (tensor.to === 'output_norm.weight' ? { ...tensor, to: 'token_embd_norm.weight' } : tensor)),
  outputNorm: 'model.embedding_norm',
  epsilon: ['attention.layer_norm_rms_epsilon', 'norm_eps'],
  isTied: true,
  settings: { conv_bias: [false] },
  preTokenizer: 'lfm2',
} as const;

/** LFM 2: gated convolutions in most layers, attention in the others. */
export const lfm2Families: readonly HfFamily[] = [
  {
    ...common,
    modelTypes: ['lfm2'],
    architecture: 'lfm2',
    normalize: (config) => adjustLength(withDefaults(config)),
    layer: (model, layer) => [...mixer(model, layer), ...feedForward(model)],
    entries: mixerEntries,
  },
  {
    ...common,
    modelTypes: ['lfm2_moe'],
    architecture: 'lfm2moe',
    normalize: withDefaults,
    layer: (model, layer) => {
      const isDense = layer < numDenseLayers(model.config);
      return [...mixer(model, layer), ...(isDense ? feedForward(model) : experts(model))];
    },
    settings: { ...common.settings, use_expert_bias: [true], norm_topk_prob: [true], routed_scaling_factor: [1] },
    entries: (model) => [
      ...mixerEntries(model),
      ...expertEntries(readExperts(model.config, EXPERT_KEYS)),
      u32('leading_dense_block_count', numDenseLayers(model.config)),
      u32('expert_gating_func', 2), // sigmoid
    ],
  },
];
