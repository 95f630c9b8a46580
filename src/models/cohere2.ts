import type { Architecture } from './architecture.ts';
import { createParallelDecoder } from './create-parallel-decoder.ts';
import type { AttentionRule } from './decoder-blocks.ts';
import { readFactor, readWindow, readWindowedLayers } from './metadata-keys.ts';
import { readRope } from './rope.ts';

/** Command R7B and Command A: like Command R, but three of four layers have a window, and only these have positions. */
export const cohere2: Architecture = {
  name: 'cohere2',
  isCausal: true,
  open(file) {
    const windowedLayers = readWindowedLayers(file, 4);
    const global: AttentionRule = { rope: null, scale: 1 / Math.sqrt(file.shape.headDim), window: 0, softcap: 0 };
    const local: AttentionRule = { ...global, rope: 0, window: readWindow(file) };
    return createParallelDecoder(file, {
      ropes: [readRope(file, 'adjacent')],
      attentionOf: (layer) => (windowedLayers[layer] ? local : global),
      norm: 'layer',
      feedForward: 'silu',
      logitScale: readFactor(file, 'logit_scale'),
    });
  },
};
