import type { RopeOp } from '../kernels/contract.ts';
import type { Architecture, Decoder } from './architecture.ts';
import type { ModelFile } from './types.ts';
import { createDecoder, type DecoderRules } from './create-decoder.ts';
import type { AttentionRule } from './decoder-blocks.ts';
import type { ExpertRules } from './experts.ts';
import { readWindow } from './metadata-keys.ts';
import { readRope } from './rope.ts';

/** Llama 1 to 3.x, Mistral, Mixtral and models converted to the same layout. */
export const llama: Architecture = {
  name: 'llama',
  isCausal: true,
  experts: 'maybe',
  open: (file) =>
    openLlamaLike(file, { pairing: 'adjacent', window: readWindow(file, 0), experts: NORMALIZED_EXPERTS }),
};

/** Weights are the softmax over the chosen experts. */
export const NORMALIZED_EXPERTS: ExpertRules = {
  scores: 'softmax',
  isNormalized: true,
  scale: 1,
  numGroups: 1,
  numUsedGroups: 1,
};

interface LlamaOptions extends Omit<DecoderRules, 'ropes' | 'attentionOf'> {
  readonly pairing: RopeOp['pairing'];
  /** Default 0: the whole context. */
  readonly window?: number;
  /** Factor of the scores; default 1 / √headDim. */
  readonly attentionScale?: number;
  /** Layers whose heads are not rotated; default none. */
  readonly isUnrotated?: (layer: number) => boolean;
}

/** Llama's blocks: one rotation, the same attention in every layer. */
export function openLlamaLike(file: ModelFile, options: LlamaOptions): Decoder {
  const { pairing, window = 0, attentionScale, isUnrotated = () => false, experts = null, ...rules } = options;
  const scale = attentionScale ?? 1 / Math.sqrt(file.shape.headDim);
  const rotated: AttentionRule = { rope: 0, scale, window, softcap: 0 };
  const unrotated: AttentionRule = { ...rotated, rope: null };
  return createDecoder(file, {
    ropes: [readRope(file, pairing)],
    attentionOf: (layer) => (isUnrotated(layer) ? unrotated : rotated),
    ...rules,
    experts: file.shape.experts === undefined ? null : experts,
  });
}
