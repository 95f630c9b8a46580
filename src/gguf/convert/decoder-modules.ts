import type { HfModule } from './hf-family.ts';

export const width: HfModule[2] = (s) => [s.embeddingLength];
export const upDims: HfModule[2] = (s) => [s.embeddingLength, s.ffnLength];
export const downDims: HfModule[2] = (s) => [s.ffnLength, s.embeddingLength];
export const outDims: HfModule[2] = (s) => [s.numHeads * s.headLength, s.embeddingLength];
const qDims: HfModule[2] = (s) => [s.embeddingLength, s.numHeads * s.headLength];
const kvDims: HfModule[2] = (s) => [s.embeddingLength, s.numKvHeads * s.headLength];

export const QKV: readonly HfModule[] = [
  ['self_attn.q_proj', 'attn_q', qDims],
  ['self_attn.k_proj', 'attn_k', kvDims],
  ['self_attn.v_proj', 'attn_v', kvDims],
];
export const ATTENTION_OUTPUT: HfModule = ['self_attn.o_proj', 'attn_output', outDims];
export const ATTENTION: readonly HfModule[] = [...QKV, ATTENTION_OUTPUT];
export const GATED: readonly HfModule[] = [
  ['mlp.gate_proj', 'ffn_gate', upDims],
  ['mlp.up_proj', 'ffn_up', upDims],
  ['mlp.down_proj', 'ffn_down', downDims],
];
export const STACKED_GATE: readonly HfModule[] = [
  ['mlp.gate_up_proj', 'ffn_up', (s) => [s.embeddingLength, 2 * s.ffnLength]],
  ['mlp.down_proj', 'ffn_down', downDims],
];
export const INPUT_NORMS: readonly HfModule[] = [
  ['input_layernorm', 'attn_norm', width],
  ['post_attention_layernorm', 'ffn_norm', width],
];
export const HEAD_NORMS: readonly HfModule[] = [
  ['self_attn.q_norm', 'attn_q_norm', (s) => [s.headLength]],
  ['self_attn.k_norm', 'attn_k_norm', (s) => [s.headLength]],
];

/** Modules with a bias in models where all matrices have one. */
export const BIASED = ['attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_up', 'ffn_down'];
export const RMS = ['attention.layer_norm_rms_epsilon', 'rms_norm_eps'] as const;
export const layerNorm = (name: string) => ['attention.layer_norm_epsilon', name] as const;
export const SILU = { hidden_act: ['silu'], attention_bias: [false], mlp_bias: [false] };
