import type { Architecture } from './architecture.ts';
import { openLlamaLike } from './llama.ts';

/**
 * Phi 3, 3.5 and 4: Llama's blocks. q, k, v and gate, up come stacked and are split where weights are read; the
 * long-context ones bring rope factors for each pair.
 */
export const phi3: Architecture = { name: 'phi3', isCausal: true, open: (file) => openLlamaLike(file, 'halves') };
