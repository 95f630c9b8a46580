import { ATTENTION, GATED, INPUT_NORMS, RMS, SILU } from '../decoder-modules.ts';
import { type Json, size } from '../hf-config.ts';
import { expertEntries, expertStacks, readExperts } from '../hf-experts.ts';
import type { HfFamily } from '../hf-family.ts';
import { weight } from '../hf-tensor.ts';

const common = {
  architecture: 'llama',
  epsilon: RMS,
  pairsNeighbours: true,
  normalize: (config: Json): Json => {
    const context = size(config, 'max_position_embeddings');
    // Within its sliding window a Mistral attends to everything, like Llama; beyond it our result would differ.
    const max_position_embeddings = Math.min(context, size(config, 'sliding_window', context));
    return { rms_norm_eps: 1e-6, ...config, max_position_embeddings };
  },
} as const;

const EXPERT_KEYS = { count: 'num_local_experts', used: 'num_experts_per_tok', ffnLength: 'intermediate_size' };

/** Llama 1 to 3.x, Mistral, and Mixtral's experts. */
export const llamaFamilies: readonly HfFamily[] = [
  {
    ...common,
    modelTypes: ['llama', 'mistral'],
    modules: [...ATTENTION, ...GATED, ...INPUT_NORMS],
    settings: { ...SILU, pretraining_tp: [1] },
  },
  {
    ...common,
    modelTypes: ['mixtral'],
    modules: [...ATTENTION, ...INPUT_NORMS],
    settings: SILU,
    layer: ({ config, shape }) => {
      const experts = readExperts(config, EXPERT_KEYS);
      const names = { at: 'block_sparse_moe.experts', gate: 'w1', down: 'w2', up: 'w3' };
      return [
        ...expertStacks(experts, shape.embeddingLength, names),
        weight('block_sparse_moe.gate', 'ffn_gate_inp', [shape.embeddingLength, experts.count]),
      ];
    },
    entries: ({ config }) => expertEntries(readExperts(config, EXPERT_KEYS)),
  },
];
