import type { Architecture } from './architecture.ts';
import { createParallelDecoder } from './create-parallel-decoder.ts';
import type { AttentionRule } from './decoder-blocks.ts';
import { readRope } from './rope.ts';

/** Phi 1, 1.5 and 2: parallel blocks with biases, part of each head is rotated, and a feed-forward layer without a gate. */
export const phi2: Architecture = {
  name: 'phi2',
  isCausal: true,
  open(file) {
    const attention: AttentionRule = { rope: 0, scale: 1 / Math.sqrt(file.shape.headDim), window: 0, softcap: 0 };
    return createParallelDecoder(file, {
      ropes: [readRope(file, 'halves')],
      attentionOf: () => attention,
      norm: 'biased-layer',
      feedForward: 'plain-gelu',
      logitScale: 1,
    });
  },
};
