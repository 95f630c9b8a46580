import { ATTENTION, GATED, RMS, SILU, width } from '../decoder-modules.ts';
import type { HfFamily } from '../hf-family.ts';
import { windowEntry } from './gemma.ts';

/** OLMo 2 and 3. */
export const olmoFamily: HfFamily = {
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
  entries: ({ config }) => (config['model_type'] === 'olmo3' ? [windowEntry(config)] : []),
};
