import type { Architecture } from './architecture.ts';
import { openLlamaLike } from './llama.ts';

/** Qwen 3: heads are normalized, then rotated by halves; the file sets their size. */
export const qwen3: Architecture = {
  name: 'qwen3',
  isCausal: true,
  open: (file) => openLlamaLike(file, { pairing: 'halves', headNorms: 'each' }),
};
