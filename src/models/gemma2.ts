import type { Architecture } from './architecture.ts';
import type { ModelFile } from './types.ts';
import {
  activateGate,
  addNormalized,
  attend,
  type AttentionRule,
  embedTokens,
  writeOutputs,
} from './decoder-blocks.ts';
import type { DecoderStep } from './decoder-step.ts';
import { readAttention, readEnds, readFeedForward, readNorm } from './decoder-weights.ts';
import { readEpsilon, readNumber, readSoftcap, readWindow, readWindowedLayers } from './metadata-keys.ts';
import { plainRope, readRope } from './rope.ts';
import type { DecoderShape } from './types.ts';
import type { WeightLoader } from './weight-loader.ts';

/** The one size whose query scale does not follow from its head size: 27B. */
const LAYERS_OF_27B = 46;

/** Gemma 2: every second layer sees a window, scores and logits are soft-capped, blocks are normalized on both sides. */
export const gemma2: Architecture = {
  name: 'gemma2',
  isCausal: true,
  open(file) {
    const config = readConfig(file);
    return {
      ropes: config.ropes,
      bind(loader) {
        const weights = readWeights(loader, config.shape);
        return (step) => forward(step, config, weights);
      },
    };
  },
};

function readConfig(file: ModelFile) {
  const { headDim, embeddingDim, numHeads, numLayers } = file.shape;
  const scaleDim = numLayers === LAYERS_OF_27B ? Math.floor(embeddingDim / numHeads) : headDim;
  const window = readWindow(file, 4096);
  const softcap = readSoftcap(file, 'attn_logit_softcapping', 50);
  const global = readRope(file, 'halves');
  const localBase = readNumber(file, 'rope.freq_base_swa', 0);
  const local = localBase > 0 ? plainRope(global.rotaryDim, localBase, 'halves') : global;
  const attention = readWindowedLayers(file, 2).map((windowed): AttentionRule => ({
    rope: windowed ? 1 : 0,
    scale: 1 / Math.sqrt(scaleDim),
    window: windowed ? window : 0,
    softcap,
  }));
  return {
    shape: file.shape,
    epsilon: readEpsilon(file),
    ropes: [global, local],
    attention,
    logitSoftcap: readSoftcap(file, 'final_logit_softcapping', 30),
  };
}

function readWeights(loader: WeightLoader, shape: DecoderShape) {
  return {
    ...readEnds(loader, shape),
    layers: Array.from({ length: shape.numLayers }, (_, layer) => ({
      attentionNorm: readNorm(loader, layer, 'attn_norm', shape),
      attention: readAttention(loader, layer, shape),
      attentionPostNorm: readNorm(loader, layer, 'post_attention_norm', shape),
      feedForwardNorm: readNorm(loader, layer, 'ffn_norm', shape),
      feedForward: readFeedForward(loader, layer, shape),
      feedForwardPostNorm: readNorm(loader, layer, 'post_ffw_norm', shape),
    })),
  };
}

function forward(
  step: DecoderStep,
  { shape, epsilon, attention, logitSoftcap }: ReturnType<typeof readConfig>,
  weights: ReturnType<typeof readWeights>,
): void {
  embedTokens(step, weights.embedding, Math.sqrt(shape.embeddingDim));
  for (const [index, layer] of weights.layers.entries()) {
    attend(step, index, layer.attentionNorm, layer.attention, attention[index]!, epsilon);
    addNormalized(step, step.buffers.attended, layer.attention.output, layer.attentionPostNorm, epsilon);
    activateGate(step, layer.feedForwardNorm, layer.feedForward, 'gelu', epsilon);
    addNormalized(step, step.buffers.gate, layer.feedForward.down, layer.feedForwardPostNorm, epsilon);
  }
  writeOutputs(step, weights.output, epsilon, logitSoftcap);
}
