import type { Architecture } from './architecture.ts';
import { NORMALIZED_EXPERTS, openLlamaLike } from './llama.ts';

/** Qwen 1.5 and 2 with experts: weights are not normalized, and a shared expert has a weight of its own. */
export const qwen2moe: Architecture = {
  name: 'qwen2moe',
  isCausal: true,
  experts: 'always',
  open: (file) => openLlamaLike(file, { pairing: 'halves', experts: { ...NORMALIZED_EXPERTS, isNormalized: false } }),
};
