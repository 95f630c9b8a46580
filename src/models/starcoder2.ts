import type { Architecture } from './architecture.ts';
import { openLlamaLike } from './llama.ts';

/** StarCoder 2: Llama's order of blocks with layer norms, biases, and a feed-forward layer without a gate. */
export const starcoder2: Architecture = {
  name: 'starcoder2',
  isCausal: true,
  open: (file) => openLlamaLike(file, { pairing: 'halves', norm: 'biased-layer', feedForward: 'plain-gelu' }),
};
