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
const LAYERS_OF_27B = 62;

/** Gemma 3 (text): five layers with a window and a rope of their own, then one without; heads are normalized. */
export const gemma3: Architecture = {
  name: 'gemma3',
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
  const window = readWindow(file, 0);
  const windowed = window > 0 ? readWindowedLayers(file, 6) : Array<boolean>(numLayers).fill(false);
  const global = readRope(file, 'halves');
  const local = plainRope(global.rotaryDim, readNumber(file, 'rope.freq_base_swa', 10000), 'halves');
  const attention = windowed.map((isLocal): AttentionRule => ({
    rope: isLocal ? 1 : 0,
    scale: 1 / Math.sqrt(scaleDim),
    window: isLocal ? window : 0,
    softcap: 0,
  }));
  return {
    shape: file.shape,
    epsilon: readEpsilon(file),
    ropes: [global, local],
    attention,
    logitSoftcap: readSoftcap(file, 'final_logit_softcapping', 0),
  };
}

function readWeights(loader: WeightLoader, shape: DecoderShape) {
  return {
    ...readEnds(loader, shape),
    layers: Array.from({ length: shape.numLayers }, (_, layer) => ({
      attentionNorm: readNorm(loader, layer, 'attn_norm', shape),
      attention: readAttention(loader, layer, shape, true),
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
