import { ATTENTION, INPUT_NORMS, RMS, STACKED_GATE, width } from '../decoder-modules.ts';
import type { HfFamily } from '../hf-family.ts';

/** GLM 4 (0414). */
export const glm4Family: HfFamily = {
  modelTypes: ['glm4'],
  architecture: 'glm4',
  normalize: (config) => ({ partial_rotary_factor: 0.5, ...config }),
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
};
