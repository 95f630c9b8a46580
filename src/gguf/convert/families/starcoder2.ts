import { ATTENTION, BIASED, downDims, INPUT_NORMS, layerNorm, upDims } from '../decoder-modules.ts';
import type { HfFamily } from '../hf-family.ts';

/** StarCoder 2. */
export const starcoder2Family: HfFamily = {
  modelTypes: ['starcoder2'],
  architecture: 'starcoder2',
  modules: [...ATTENTION, ['mlp.c_fc', 'ffn_up', upDims], ['mlp.c_proj', 'ffn_down', downDims], ...INPUT_NORMS],
  biased: [...BIASED, 'attn_norm', 'ffn_norm', 'output_norm'],
  epsilon: layerNorm('norm_epsilon'),
  isTied: true,
  settings: { hidden_act: ['gelu_pytorch_tanh'], norm_type: ['layer_norm'], use_bias: [true] },
};
