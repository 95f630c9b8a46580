import { ATTENTION, GATED, INPUT_NORMS, RMS, SILU } from '../decoder-modules.ts';
import type { HfFamily } from '../hf-family.ts';

/** SmolLM 3. */
export const smollm3Family: HfFamily = {
  modelTypes: ['smollm3'],
  architecture: 'smollm3',
  modules: [...ATTENTION, ...GATED, ...INPUT_NORMS],
  epsilon: RMS,
  pairsNeighbours: true,
  settings: { ...SILU, no_rope_layer_interval: [4], use_sliding_window: [false] },
};
