import type { Architecture } from './architecture.ts';
import { NORMALIZED_EXPERTS, openLlamaLike } from './llama.ts';
import { readFactor } from './metadata-keys.ts';

/** Granite 3 and dense Granite 4: Llama's blocks, with factors on embeddings, scores, block outputs and logits. */
export const granite: Architecture = {
  name: 'granite',
  isCausal: true,
  open(file) {
    const isRotated = file.gguf.metadata.boolean(`${file.shape.architecture}.rope.scaling.finetuned`, true);
    return openLlamaLike(file, {
      pairing: 'adjacent',
      isUnrotated: () => !isRotated,
      attentionScale: readFactor(file, 'attention.scale', 1 / Math.sqrt(file.shape.headDim)),
      embeddingScale: readFactor(file, 'embedding_scale', 1),
      residualScale: readFactor(file, 'residual_scale', 1),
      logitScale: 1 / readFactor(file, 'logit_scale'), // The file has the divisor.
      experts: NORMALIZED_EXPERTS,
    });
  },
};

/** Granite 3 with experts. */
export const graniteMoe: Architecture = { ...granite, name: 'granitemoe', experts: 'always' };
