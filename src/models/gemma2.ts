import type { Architecture, Decoder } from './architecture.ts';
import type { ModelFile } from './types.ts';
import { createDecoder } from './create-decoder.ts';
import type { AttentionRule } from './decoder-blocks.ts';
import type { HeadNorms } from './decoder-weights.ts';
import { readNumber, readSoftcap, readWindow, readWindowedLayers } from './metadata-keys.ts';
import { plainRope, readRope, type RopeVariant } from './rope.ts';

/** Gemma 2: every second layer has a window, scores and logits are soft-capped, blocks are normalized on both sides. */
export const gemma2: Architecture = {
  name: 'gemma2',
  isCausal: true,
  open(file) {
    const global = readRope(file, 'halves');
    const localBase = readNumber(file, 'rope.freq_base_swa', 0);
    return openGemma(file, {
      numLayersOf27B: 46,
      window: readWindow(file, 4096),
      windowedLayers: readWindowedLayers(file, 2),
      ropes: [global, localBase > 0 ? plainRope(global.rotaryDim, localBase, 'halves') : global],
      headNorms: 'none',
      attentionSoftcap: readSoftcap(file, 'attn_logit_softcapping', 50),
      logitSoftcap: readSoftcap(file, 'final_logit_softcapping', 30),
    });
  },
};

interface GemmaOptions {
  /** Identifies the 27B model, the only one whose query scale does not follow from its head size. */
  readonly numLayersOf27B: number;
  readonly window: number;
  /** One entry per layer. */
  readonly windowedLayers: readonly boolean[];
  /** Of layers without a window, and of those with one. */
  readonly ropes: readonly [global: RopeVariant, local: RopeVariant];
  readonly headNorms: HeadNorms;
  readonly attentionSoftcap: number;
  readonly logitSoftcap: number;
}

/** Gemma's blocks: some layers have a window and a separate rotation, and block outputs are normalized. */
export function openGemma(file: ModelFile, options: GemmaOptions): Decoder {
  const { window, windowedLayers, ropes, headNorms, attentionSoftcap, logitSoftcap } = options;
  const { headDim, embeddingDim, numHeads, numLayers } = file.shape;
  const scaleDim = numLayers === options.numLayersOf27B ? Math.floor(embeddingDim / numHeads) : headDim;
  const shared = { scale: 1 / Math.sqrt(scaleDim), softcap: attentionSoftcap };
  const global: AttentionRule = { ...shared, rope: 0, window: 0 };
  const local: AttentionRule = { ...shared, rope: 1, window };
  return createDecoder(file, {
    ropes,
    attentionOf: (layer) => (windowedLayers[layer] ? local : global),
    headNorms,
    blockNorms: 'both',
    feedForward: 'gelu',
    embeddingScale: Math.sqrt(embeddingDim),
    logitSoftcap,
  });
}
