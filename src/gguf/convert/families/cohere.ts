import { ATTENTION, GATED, layerNorm, SILU, width } from '../decoder-modules.ts';
import { positive } from '../hf-config.ts';
import { f32, type HfFamily, type HfModel } from '../hf-family.ts';
import { windowEntry } from './gemma.ts';

const logitScale = ({ config }: HfModel) => f32('logit_scale', positive(config, 'logit_scale', 0.0625));

const common = {
  modules: [...ATTENTION, ...GATED, ['input_layernorm', 'attn_norm', width]],
  epsilon: layerNorm('layer_norm_eps'),
  isTied: true,
  preTokenizer: 'command-r',
} as const;

/** Command R, R7B and A. */
export const cohereFamilies: readonly HfFamily[] = [
  {
    ...common,
    modelTypes: ['cohere'],
    architecture: 'command-r',
    settings: { ...SILU, use_qk_norm: [false] },
    entries: (model) => [logitScale(model)],
  },
  {
    ...common,
    modelTypes: ['cohere2'],
    architecture: 'cohere2',
    settings: { ...SILU, sliding_window_pattern: [4] },
    entries: (model) => [logitScale(model), windowEntry(model.config)],
  },
];
