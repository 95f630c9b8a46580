import {
  BIASED,
  downDims,
  INPUT_NORMS,
  layerNorm,
  outDims,
  QKV,
  RMS,
  SILU,
  STACKED_GATE,
  upDims,
  width,
} from '../decoder-modules.ts';
import type { HfFamily } from '../hf-family.ts';
import { windowEntry } from './gemma.ts';

/** Phi 1.5 to 4. */
export const phiFamilies: readonly HfFamily[] = [
  {
    modelTypes: ['phi'],
    architecture: 'phi2',
    normalize: (config) => ({ partial_rotary_factor: 0.5, ...config }),
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
    entries: ({ config }) => (typeof config['sliding_window'] === 'number' ? [windowEntry(config)] : []),
  },
];
