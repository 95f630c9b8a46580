import type { Architecture } from './architecture.ts';
import { openLlamaLike } from './llama.ts';
import { readWindow } from './metadata-keys.ts';

/**
 * Phi 3, 3.5 and 4: Llama's blocks, rotated by halves. Files stack q, k, v and gate, up; the weight readers split them. Long-context models
 * have rope factors per pair.
 */
export const phi3: Architecture = {
  name: 'phi3',
  isCausal: true,
  open: (file) => openLlamaLike(file, { pairing: 'halves', window: readWindow(file, 0) }),
};
