import type { Architecture } from './architecture.ts';
import { NORMALIZED_EXPERTS, openLlamaLike } from './llama.ts';

/** Qwen 3 with experts in every layer. */
export const qwen3moe: Architecture = {
  name: 'qwen3moe',
  isCausal: true,
  experts: 'always',
  open: (file) => openLlamaLike(file, { pairing: 'halves', headNorms: 'each', experts: NORMALIZED_EXPERTS }),
};
