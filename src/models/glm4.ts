import type { Architecture } from './architecture.ts';
import { openLlamaLike } from './llama.ts';

/** GLM 4 (0414): Llama's blocks, normalized on both sides; half of each head is rotated, gate and up are stacked. */
export const glm4: Architecture = {
  name: 'glm4',
  isCausal: true,
  open: (file) => openLlamaLike(file, { pairing: 'adjacent', blockNorms: 'both' }),
};
