import type { Architecture } from './architecture.ts';
import { createDecoder } from './create-decoder.ts';
import type { AttentionRule } from './decoder-blocks.ts';
import { readNumber, readWindow, readWindowedLayers } from './metadata-keys.ts';
import { DEFAULT_ROPE_BASE, plainRope, readRope } from './rope.ts';

/**
 * OLMo 2 and 3: only the outputs of blocks are normalized, and all heads of a row together. In OLMo 3 the last layer of every four
 * sees the whole context with stretched rotations; the others have a window.
 */
export const olmo2: Architecture = {
  name: 'olmo2',
  isCausal: true,
  open(file) {
    const window = readWindow(file, 0);
    const windowedLayers = window > 0 ? readWindowedLayers(file, 4) : [];
    const rope = readRope(file, 'halves');
    const base = readNumber(file, 'rope.freq_base', DEFAULT_ROPE_BASE);
    const global: AttentionRule = { rope: 0, scale: 1 / Math.sqrt(file.shape.headDim), window: 0, softcap: 0 };
    const local: AttentionRule = { ...global, rope: 1, window };
    return createDecoder(file, {
      ropes: [rope, plainRope(rope.rotaryDim, base, 'halves')],
      attentionOf: (layer) => (windowedLayers[layer] ? local : global),
      headNorms: 'together',
      blockNorms: 'output',
    });
  },
};
