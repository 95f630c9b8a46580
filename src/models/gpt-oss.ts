import type { Architecture } from './architecture.ts';
import { createDecoder } from './create-decoder.ts';
import type { AttentionRule } from './decoder-blocks.ts';
import { readWindow, readWindowedLayers } from './metadata-keys.ts';
import { readRope } from './rope.ts';

/** gpt-oss: every second layer has a window, heads have sinks, and experts have biases and clamped gates. */
export const gptOss: Architecture = {
  name: 'gpt-oss',
  isCausal: true,
  experts: 'always',
  open(file) {
    const windowedLayers = readWindowedLayers(file, 2);
    const global: AttentionRule = { rope: 0, scale: 1 / Math.sqrt(file.shape.headDim), window: 0, softcap: 0 };
    const local: AttentionRule = { ...global, window: readWindow(file, 128) };
    return createDecoder(file, {
      ropes: [readRope(file, 'halves')],
      attentionOf: (layer) => (windowedLayers[layer] ? local : global),
      hasSinks: true,
      feedForwardNorm: 'post_attention_norm',
      feedForward: 'clamped-swiglu',
      experts: { scores: 'chosen-softmax', isNormalized: false, scale: 1, numGroups: 1, numUsedGroups: 1 },
    });
  },
};
