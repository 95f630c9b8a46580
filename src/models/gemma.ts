import type { Architecture } from './architecture.ts';
import { openLlamaLike } from './llama.ts';

/** Gemma 1: Llama's blocks with a GELU gate, and embeddings scaled by the root of their width. */
export const gemma: Architecture = {
  name: 'gemma',
  isCausal: true,
  open: (file) =>
    openLlamaLike(file, {
      pairing: 'halves',
      feedForward: 'gelu',
      embeddingScale: Math.sqrt(file.shape.embeddingDim),
    }),
};
