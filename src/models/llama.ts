import type { RopeOp } from '../kernels/contract.ts';
import type { Architecture, Decoder } from './architecture.ts';
import type { ModelFile } from './types.ts';
import type { AttentionRule } from './decoder-blocks.ts';
import { createDecoder } from './create-decoder.ts';
import { readWindow } from './metadata-keys.ts';
import { readRope } from './rope.ts';

/** Llama 1 to 3.x, Mistral and models converted to the same layout. */
export const llama: Architecture = {
  name: 'llama',
  isCausal: true,
  open: (file) => openLlamaLike(file, { pairing: 'adjacent', window: readWindow(file, 0) }),
};

interface LlamaOptions {
  readonly pairing: RopeOp['pairing'];
  /** Default 0: the whole context. */
  readonly window?: number;
  /** Default false. */
  readonly hasHeadNorms?: boolean;
}

/** Llama's blocks: one rotation, the same attention in every layer. */
export function openLlamaLike(file: ModelFile, options: LlamaOptions): Decoder {
  const { pairing, window = 0, hasHeadNorms = false } = options;
  const attention: AttentionRule = { rope: 0, scale: 1 / Math.sqrt(file.shape.headDim), window, softcap: 0 };
  return createDecoder(file, {
    ropes: [readRope(file, pairing)],
    attentionOf: () => attention,
    hasHeadNorms,
    hasPostNorms: false,
    activation: 'silu',
    embeddingScale: 1,
    logitSoftcap: 0,
  });
}
