import type { MetadataEntry } from '../types.ts';
import { type Json, positive, size } from './hf-config.ts';
import { checkSettings, type HfDecoderShape } from './hf-decoder-shape.ts';

/** A module of a layer: its name in the checkpoint, its name in GGUF, and its [columns, rows]. */
export type HfModule = readonly [from: string, to: string, dims: (shape: HfDecoderShape) => readonly number[]];

/** How checkpoints of one kind become GGUF files. */
export interface HfFamily {
  readonly modelTypes: readonly string[];
  readonly architecture: string;
  readonly modules: readonly HfModule[];
  /** GGUF names of modules with a bias; others have none. Default none. */
  readonly biased?: readonly string[];
  /** Default `model.norm`. */
  readonly outputNorm?: string;
  /** Metadata key of the epsilon, and its name in config.json. */
  readonly epsilon: readonly [key: string, name: string];
  /** Added to the weights of norms; default 0. */
  readonly normOffset?: number;
  /** GGUF rotates adjacent values, the checkpoint halves: rows of q and k are reordered. Default false. */
  readonly pairsNeighbours?: boolean;
  /** Whether the output is the embedding if config.json does not say; default false. */
  readonly isTied?: boolean;
  /** Accepted values of settings that change the arithmetic. */
  readonly settings: Readonly<Record<string, readonly unknown[]>>;
  /** Keys under the architecture's prefix. */
  readonly entries?: (config: Json, shape: HfDecoderShape) => readonly MetadataEntry[];
  /** If the splitting rule alone does not identify it. */
  readonly preTokenizer?: string;
}

const width: HfModule[2] = (s) => [s.embeddingLength];
const qDims: HfModule[2] = (s) => [s.embeddingLength, s.numHeads * s.headLength];
const kvDims: HfModule[2] = (s) => [s.embeddingLength, s.numKvHeads * s.headLength];
const outDims: HfModule[2] = (s) => [s.numHeads * s.headLength, s.embeddingLength];
const upDims: HfModule[2] = (s) => [s.embeddingLength, s.ffnLength];
const downDims: HfModule[2] = (s) => [s.ffnLength, s.embeddingLength];

const QKV: readonly HfModule[] = [
  ['self_attn.q_proj', 'attn_q', qDims],
  ['self_attn.k_proj', 'attn_k', kvDims],
  ['self_attn.v_proj', 'attn_v', kvDims],
];
const ATTENTION: readonly HfModule[] = [...QKV, ['self_attn.o_proj', 'attn_output', outDims]];
const GATED: readonly HfModule[] = [
  ['mlp.gate_proj', 'ffn_gate', upDims],
  ['mlp.up_proj', 'ffn_up', upDims],
  ['mlp.down_proj', 'ffn_down', downDims],
];
const STACKED_GATE: readonly HfModule[] = [
  ['mlp.gate_up_proj', 'ffn_up', (s) => [s.embeddingLength, 2 * s.ffnLength]],
  ['mlp.down_proj', 'ffn_down', downDims],
];
const INPUT_NORMS: readonly HfModule[] = [
  ['input_layernorm', 'attn_norm', width],
  ['post_attention_layernorm', 'ffn_norm', width],
];
const HEAD_NORMS: readonly HfModule[] = [
  ['self_attn.q_norm', 'attn_q_norm', (s) => [s.headLength]],
  ['self_attn.k_norm', 'attn_k_norm', (s) => [s.headLength]],
];
const GEMMA_NORMS: readonly HfModule[] = [
  ['input_layernorm', 'attn_norm', width],
  ['post_attention_layernorm', 'post_attention_norm', width],
  ['pre_feedforward_layernorm', 'ffn_norm', width],
  ['post_feedforward_layernorm', 'post_ffw_norm', width],
];

const BIASED = ['attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_up', 'ffn_down'];

const RMS = ['attention.layer_norm_rms_epsilon', 'rms_norm_eps'] as const;
const layerNorm = (name: string) => ['attention.layer_norm_epsilon', name] as const;
const SILU = { hidden_act: ['silu'], attention_bias: [false], mlp_bias: [false] };
/** Older Gemma files say gelu and mean its approximation. */
const GELU = ['gelu_pytorch_tanh', 'gelu'];

const f32 = (key: string, value: number): MetadataEntry => ({ key, type: 'f32', value: Math.fround(value) });
const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
const window = (config: Json, defaultValue?: number) =>
  u32('attention.sliding_window', size(config, 'sliding_window', defaultValue));

/** Decoders derive the scale of scores from the head size, and from the width only in the 27B models. */
function checkQueryScale(config: Json, shape: HfDecoderShape, numLayersOf27B: number): void {
  const expected =
    shape.numLayers === numLayersOf27B ? Math.floor(shape.embeddingLength / shape.numHeads) : shape.headLength;
  checkSettings(config, { query_pre_attn_scalar: [expected] });
}

/** All kinds of checkpoints that the general converter reads. */
export const HF_FAMILIES: readonly HfFamily[] = [
  {
    modelTypes: ['qwen2'],
    architecture: 'qwen2',
    modules: [...ATTENTION, ...GATED, ...INPUT_NORMS],
    biased: ['attn_q', 'attn_k', 'attn_v'],
    epsilon: RMS,
    settings: { hidden_act: ['silu'], use_sliding_window: [false] },
  },
  {
    modelTypes: ['qwen3'],
    architecture: 'qwen3',
    modules: [...ATTENTION, ...GATED, ...INPUT_NORMS, ...HEAD_NORMS],
    epsilon: RMS,
    settings: { ...SILU, use_sliding_window: [false] },
  },
  {
    modelTypes: ['phi3'],
    architecture: 'phi3',
    modules: [
      ['self_attn.qkv_proj', 'attn_qkv', (s) => [s.embeddingLength, (s.numHeads + 2 * s.numKvHeads) * s.headLength]],
      ['self_attn.o_proj', 'attn_output', outDims],
      ...STACKED_GATE,
      ...INPUT_NORMS,
    ],
    epsilon: RMS,
    settings: SILU,
    entries: (config) => (typeof config['sliding_window'] === 'number' ? [window(config)] : []),
  },
  {
    modelTypes: ['gemma'],
    architecture: 'gemma',
    modules: [...ATTENTION, ...GATED, ...INPUT_NORMS],
    epsilon: RMS,
    normOffset: 1,
    isTied: true,
    settings: { hidden_act: GELU, hidden_activation: GELU, attention_bias: [false] },
  },
  {
    modelTypes: ['gemma2'],
    architecture: 'gemma2',
    modules: [...ATTENTION, ...GATED, ...GEMMA_NORMS],
    epsilon: RMS,
    normOffset: 1,
    isTied: true,
    settings: { hidden_act: GELU, hidden_activation: GELU, attention_bias: [false] },
    entries: (config, shape) => {
      checkQueryScale(config, shape, 46);
      return [
        window(config, 4096),
        f32('attn_logit_softcapping', positive(config, 'attn_logit_softcapping', 50)),
        f32('final_logit_softcapping', positive(config, 'final_logit_softcapping', 30)),
      ];
    },
  },
  {
    modelTypes: ['gemma3_text'],
    architecture: 'gemma3',
    modules: [...ATTENTION, ...GATED, ...GEMMA_NORMS, ...HEAD_NORMS],
    epsilon: RMS,
    normOffset: 1,
    isTied: true,
    settings: { hidden_activation: GELU, attention_bias: [false], sliding_window_pattern: [6] },
    entries: (config, shape) => {
      checkQueryScale(config, shape, 62);
      const localBase = positive(config, 'rope_local_base_freq', 10_000);
      return [window(config, 4096), f32('rope.freq_base_swa', localBase)];
    },
  },
  {
    modelTypes: ['smollm3'],
    architecture: 'smollm3',
    modules: [...ATTENTION, ...GATED, ...INPUT_NORMS],
    epsilon: RMS,
    pairsNeighbours: true,
    settings: { ...SILU, no_rope_layer_interval: [4], use_sliding_window: [false] },
  },
  {
    modelTypes: ['olmo2', 'olmo3'],
    architecture: 'olmo2',
    modules: [
      ...ATTENTION,
      ...GATED,
      ['post_attention_layernorm', 'post_attention_norm', width],
      ['post_feedforward_layernorm', 'post_ffw_norm', width],
      ['self_attn.q_norm', 'attn_q_norm', (s) => [s.numHeads * s.headLength]],
      ['self_attn.k_norm', 'attn_k_norm', (s) => [s.numKvHeads * s.headLength]],
    ],
    epsilon: RMS,
    settings: SILU,
    entries: (config) => (config['model_type'] === 'olmo3' ? [window(config)] : []),
  },
  {
    modelTypes: ['granite'],
    architecture: 'granite',
    modules: [...ATTENTION, ...GATED, ...INPUT_NORMS],
    epsilon: RMS,
    pairsNeighbours: true,
    settings: SILU,
    entries: (config) => [
      f32('embedding_scale', positive(config, 'embedding_multiplier', 1)),
      f32('residual_scale', positive(config, 'residual_multiplier', 1)),
      f32('attention.scale', positive(config, 'attention_multiplier', 1)),
      f32('logit_scale', positive(config, 'logits_scaling', 1)),
    ],
  },
  {
    modelTypes: ['glm4'],
    architecture: 'glm4',
    modules: [
      ...ATTENTION,
      ...STACKED_GATE,
      ...INPUT_NORMS,
      ['post_self_attn_layernorm', 'post_attention_norm', width],
      ['post_mlp_layernorm', 'post_ffw_norm', width],
    ],
    biased: ['attn_q', 'attn_k', 'attn_v'],
    epsilon: RMS,
    settings: { hidden_act: ['silu'] },
    preTokenizer: 'glm4',
  },
  {
    modelTypes: ['phi'],
    architecture: 'phi2',
    modules: [
      ...QKV,
      ['self_attn.dense', 'attn_output', outDims],
      ['mlp.fc1', 'ffn_up', upDims],
      ['mlp.fc2', 'ffn_down', downDims],
      ['input_layernorm', 'attn_norm', width],
    ],
    biased: [...BIASED, 'attn_norm', 'output_norm', 'output'],
    outputNorm: 'model.final_layernorm',
    epsilon: layerNorm('layer_norm_eps'),
    settings: { hidden_act: ['gelu_new'], qk_layernorm: [false] },
  },
  {
    modelTypes: ['starcoder2'],
    architecture: 'starcoder2',
    modules: [...ATTENTION, ['mlp.c_fc', 'ffn_up', upDims], ['mlp.c_proj', 'ffn_down', downDims], ...INPUT_NORMS],
    biased: [...BIASED, 'attn_norm', 'ffn_norm', 'output_norm'],
    epsilon: layerNorm('norm_epsilon'),
    isTied: true,
    settings: { hidden_act: ['gelu_pytorch_tanh'], norm_type: ['layer_norm'], use_bias: [true] },
  },
  {
    modelTypes: ['cohere'],
    architecture: 'command-r',
    modules: [...ATTENTION, ...GATED, ['input_layernorm', 'attn_norm', width]],
    epsilon: layerNorm('layer_norm_eps'),
    isTied: true,
    settings: { ...SILU, use_qk_norm: [false] },
    entries: (config) => [f32('logit_scale', positive(config, 'logit_scale', 0.0625))],
    preTokenizer: 'command-r',
  },
  {
    modelTypes: ['cohere2'],
    architecture: 'cohere2',
    modules: [...ATTENTION, ...GATED, ['input_layernorm', 'attn_norm', width]],
    epsilon: layerNorm('layer_norm_eps'),
    isTied: true,
    settings: { ...SILU, sliding_window_pattern: [4] },
    entries: (config) => [f32('logit_scale', positive(config, 'logit_scale', 0.0625)), window(config)],
    preTokenizer: 'command-r',
  },
];
