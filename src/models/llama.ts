import type { RopeOp } from '../kernels/contract.ts';
import type { Architecture, Decoder } from './architecture.ts';
import type { ModelFile } from './types.ts';
import { activateGate, addProjected, attend, type AttentionRule, embedTokens, writeOutputs } from './decoder-blocks.ts';
import type { DecoderStep } from './decoder-step.ts';
import { readAttention, readEnds, readFeedForward, readNorm } from './decoder-weights.ts';
import { readEpsilon, readWindow } from './metadata-keys.ts';
import { readRope } from './rope.ts';
import type { DecoderShape } from './types.ts';
import type { WeightLoader } from './weight-loader.ts';

/** Llama 1 to 3.x, Mistral and everything converted to look like them. */
export const llama: Architecture = { name: 'llama', isCausal: true, open: (file) => openLlamaLike(file, 'adjacent') };

/** Llama's blocks, with heads rotated in either way. */
export function openLlamaLike(file: ModelFile, pairing: RopeOp['pairing']): Decoder {
  const config = readConfig(file);
  return {
    ropes: [readRope(file, pairing)],
    bind(loader) {
      const weights = readWeights(loader, config.shape);
      return (step) => forward(step, config, weights);
    },
  };
}

function readConfig(file: ModelFile) {
  const attention: AttentionRule = {
    rope: 0,
    scale: 1 / Math.sqrt(file.shape.headDim),
    window: readWindow(file, 0),
    softcap: 0,
  };
  return { shape: file.shape, epsilon: readEpsilon(file), attention };
}

function readWeights(loader: WeightLoader, shape: DecoderShape) {
  return {
    ...readEnds(loader, shape),
    layers: Array.from({ length: shape.numLayers }, (_, layer) => ({
      attentionNorm: readNorm(loader, layer, 'attn_norm', shape),
      attention: readAttention(loader, layer, shape),
      feedForwardNorm: readNorm(loader, layer, 'ffn_norm', shape),
      feedForward: readFeedForward(loader, layer, shape),
    })),
  };
}

function forward(
  step: DecoderStep,
  { epsilon, attention }: ReturnType<typeof readConfig>,
  weights: ReturnType<typeof readWeights>,
): void {
  embedTokens(step, weights.embedding, 1);
  for (const [index, layer] of weights.layers.entries()) {
    attend(step, index, layer.attentionNorm, layer.attention, attention, epsilon);
    addProjected(step, step.buffers.attended, layer.attention.output);
    activateGate(step, layer.feedForwardNorm, layer.feedForward, 'silu', epsilon);
    addProjected(step, step.buffers.gate, layer.feedForward.down);
  }
  writeOutputs(step, weights.output, epsilon, 0);
}
