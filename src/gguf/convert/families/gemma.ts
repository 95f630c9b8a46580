import type { MetadataEntry } from '../../types.ts';
import { ATTENTION, GATED, HEAD_NORMS, INPUT_NORMS, RMS, width } from '../decoder-modules.ts';
import { type Json, positive, size } from '../hf-config.ts';
import { checkSettings, type HfDecoderShape, localRopeBase } from '../hf-decoder-shape.ts';
import { f32, type HfFamily, type HfModule, u32 } from '../hf-family.ts';

/** Norms on both sides of a block. */
export const GEMMA_NORMS: readonly HfModule[] = [
  ['input_layernorm', 'attn_norm', width],
  ['post_attention_layernorm', 'post_attention_norm', width],
  ['pre_feedforward_layernorm', 'ffn_norm', width],
  ['post_feedforward_layernorm', 'post_ffw_norm', width],
];

/** Older files say gelu and mean its approximation. */
export const GELU = ['gelu_pytorch_tanh', 'gelu'];

export const windowEntry = (config: Json, defaultValue?: number): MetadataEntry =>
  u32('attention.sliding_window', size(config, 'sliding_window', defaultValue));

/** Decoders derive the scale of scores from the head size, and from the width only in the 27B models. */
function checkQueryScale(config: Json, shape: HfDecoderShape, numLayersOf27B: number): void {
  const expected =
    shape.numLayers === numLayersOf27B ? Math.floor(shape.embeddingLength / shape.numHeads) : shape.headLength;
  checkSettings(config, { query_pre_attn_scalar: [expected] });
}

/** Values that config.json of Gemma 3 and 3n may leave out. */
export const GEMMA3_DEFAULTS = {
  vocab_size: 262_208,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  head_dim: 256,
  max_position_embeddings: 131_072,
  rms_norm_eps: 1e-6,
  rope_theta: 1_000_000,
};

const common = { epsilon: RMS, hasShiftedNorms: true, isTied: true } as const;
const SETTINGS = { hidden_act: GELU, hidden_activation: GELU, attention_bias: [false] };

/** Gemma 1 to 3, text only. */
export const gemmaFamilies: readonly HfFamily[] = [
  {
    ...common,
    modelTypes: ['gemma'],
    architecture: 'gemma',
    modules: [...ATTENTION, ...GATED, ...INPUT_NORMS],
    settings: SETTINGS,
  },
  {
    ...common,
    modelTypes: ['gemma2'],
    architecture: 'gemma2',
    modules: [...ATTENTION, ...GATED, ...GEMMA_NORMS],
    settings: SETTINGS,
    entries: ({ config, shape }) => {
      checkQueryScale(config, shape, 46);
      return [
        windowEntry(config, 4096),
        f32('attn_logit_softcapping', positive(config, 'attn_logit_softcapping', 50)),
        f32('final_logit_softcapping', positive(config, 'final_logit_softcapping', 30)),
      ];
    },
  },
  {
    ...common,
    modelTypes: ['gemma3_text', 'gemma3'],
    architecture: 'gemma3',
    normalize: (config) => ({ ...GEMMA3_DEFAULTS, ...config }),
    modules: [...ATTENTION, ...GATED, ...GEMMA_NORMS, ...HEAD_NORMS],
    settings: { ...SETTINGS, sliding_window_pattern: [6] },
    entries: ({ config, shape }) => {
      checkQueryScale(config, shape, 62);
      return [windowEntry(config, 4096), f32('rope.freq_base_swa', localRopeBase(config))];
    },
  },
];
