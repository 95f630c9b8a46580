import type { Architecture } from './architecture.ts';
import { openLlamaLike } from './llama.ts';

/** Qwen 2 and 2.5: Llama's blocks with biases on q, k and v, and heads rotated by halves. */
export const qwen2: Architecture = {
  name: 'qwen2',
  isCausal: true,
  open: (file) => openLlamaLike(file, { pairing: 'halves' }),
};
