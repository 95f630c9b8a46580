import type { HfKind } from './hf-kind.ts';

const GEMMA_NAMES = {
  post_attention_norm: 'post_attention_layernorm',
  ffn_norm: 'pre_feedforward_layernorm',
  post_ffw_norm: 'post_feedforward_layernorm',
};
const tied = { tie_word_embeddings: true };

/** Dense decoders, by architecture. */
export const denseKinds: Readonly<Record<string, HfKind>> = {
  llama: { modelType: 'llama', rope: 'interleaved' },
  qwen2: { modelType: 'qwen2', config: () => tied },
  qwen3: {
    modelType: 'qwen3',
    config: () => ({ rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 64 } }),
  },
  phi3: {
    modelType: 'phi3',
    names: { ffn_up: 'mlp.gate_up_proj' },
    config: ({ number }) => ({
      partial_rotary_factor: number('rope.dimension_count') / 16,
      original_max_position_embeddings: 128,
      rope_scaling: {
        type: 'longrope',
        attention_factor: 1.19,
        long_factor: ramp(number('rope.dimension_count') / 2, 20),
        short_factor: ramp(number('rope.dimension_count') / 2, 1.5),
      },
    }),
  },
  gemma: { modelType: 'gemma', normMinusOne: true },
  gemma2: {
    modelType: 'gemma2',
    names: GEMMA_NAMES,
    normMinusOne: true,
    config: () => ({ sliding_window: 8, attn_logit_softcapping: 5, final_logit_softcapping: 10 }),
  },
  gemma3: {
    modelType: 'gemma3_text',
    names: GEMMA_NAMES,
    normMinusOne: true,
    config: () => ({ sliding_window: 8, rope_scaling: { rope_type: 'linear', factor: 8 } }),
  },
  smollm3: { modelType: 'smollm3', rope: 'interleaved', config: () => tied },
  olmo2: {
    modelType: 'olmo3',
    names: { post_attention_norm: 'post_attention_layernorm', post_ffw_norm: 'post_feedforward_layernorm' },
    config: () => ({
      sliding_window: 8,
      rope_scaling: { rope_type: 'yarn', factor: 8, original_max_position_embeddings: 64 },
    }),
  },
  granite: {
    modelType: 'granite',
    rope: 'interleaved',
    config: ({ number }) => ({
      ...tied,
      embedding_multiplier: number('embedding_scale'),
      residual_multiplier: number('residual_scale'),
      attention_multiplier: number('attention.scale'),
      logits_scaling: number('logit_scale'),
    }),
  },
  glm4: {
    modelType: 'glm4',
    names: {
      ffn_up: 'mlp.gate_up_proj',
      post_attention_norm: 'post_self_attn_layernorm',
      post_ffw_norm: 'post_mlp_layernorm',
    },
    config: () => ({ partial_rotary_factor: 0.5, attention_bias: true }),
  },
  phi2: {
    modelType: 'phi',
    names: {
      attn_output: 'self_attn.dense',
      ffn_up: 'mlp.fc1',
      ffn_down: 'mlp.fc2',
      output_norm: 'model.final_layernorm',
    },
    epsilonName: 'layer_norm_eps',
    config: () => ({ partial_rotary_factor: 0.5 }),
  },
  starcoder2: {
    modelType: 'starcoder2',
    names: { ffn_up: 'mlp.c_fc', ffn_down: 'mlp.c_proj' },
    epsilonName: 'norm_epsilon',
  },
  'command-r': {
    modelType: 'cohere',
    epsilonName: 'layer_norm_eps',
    config: ({ number }) => ({ logit_scale: number('logit_scale') }),
  },
  cohere2: {
    modelType: 'cohere2',
    epsilonName: 'layer_norm_eps',
    config: ({ number }) => ({ logit_scale: number('logit_scale'), sliding_window: 8 }),
  },
};

const ramp = (length: number, last: number): number[] =>
  Array.from({ length }, (_, i) => 1 + ((last - 1) * i) / Math.max(1, length - 1));
