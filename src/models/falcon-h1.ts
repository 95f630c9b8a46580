import type { Architecture, Decoder } from './architecture.ts';
import { addProjected, type AttentionRule, attend, embedTokens, writeOutputs } from './decoder-blocks.ts';
import { type BlockInput, materialize, type NormRule, normalizedInput, readNorm } from './decoder-norms.ts';
import { readAttention, readEnds } from './decoder-weights.ts';
import { readFeedForwardBlock } from './feed-forward-block.ts';
import { NORMALIZED_EXPERTS } from './llama.ts';
import { mamba2Scratch, mamba2StateBytes, readMamba2, readMamba2Shape, runMamba2 } from './mamba2.ts';
import { readEpsilon, readFactor } from './metadata-keys.ts';
import { readRope } from './rope.ts';
import type { ModelFile } from './types.ts';
import type { WeightLoader } from './weight-loader.ts';

/** Falcon H1: every layer has attention and Mamba 2 side by side, with the same input. */
export const falconH1: Architecture = { name: 'falcon-h1', isCausal: true, open };

function open(file: ModelFile): Decoder {
  const { shape } = file;
  const norms: NormRule = { kind: 'rms', epsilon: readEpsilon(file) };
  const mamba = readMamba2Shape(file);
  const layerBytes = mamba2StateBytes(mamba);
  const scale = readFactor(file, 'attention.scale', 1 / Math.sqrt(shape.headDim));
  const rule: AttentionRule = { rope: 0, scale, window: 0, softcap: 0 };
  const readLayer = (loader: WeightLoader, layer: number) => ({
    norm: readNorm(loader, `blk.${layer}.attn_norm`, shape.embeddingDim, norms),
    attention: readAttention(loader, layer, shape),
    mamba: readMamba2(loader, layer, shape.embeddingDim, mamba, { hasOptionalParts: true }),
    feedForwardNorm: { weight: readSecondNorm(loader, layer, shape.embeddingDim), bias: null, epsilon: norms.epsilon },
    feedForward: readFeedForwardBlock(loader, layer, shape, { experts: NORMALIZED_EXPERTS }),
  });
  return {
    ropes: [readRope(file, 'halves')],
    stateBytes: shape.numLayers * layerBytes,
    scratch: mamba2Scratch(mamba),
    bind(loader) {
      const ends = readEnds(loader, shape, norms);
      const layers = Array.from({ length: shape.numLayers }, (_, layer) => readLayer(loader, layer));
      return (step) => {
        embedTokens(step, ends.embedding, 1);
        for (const [index, layer] of layers.entries()) {
          // Normalized once, because the residual changes before the second branch reads it.
          const input: BlockInput = { x: materialize(step, normalizedInput(step, layer.norm)), norm: null };
          const state = { partOffset: index * layerBytes, epsilon: norms.epsilon };
          const mixed = runMamba2(step, input, layer.mamba, mamba, state);
          addProjected(step, mixed, layer.mamba.output);
          attend(step, index, input, layer.attention, rule);
          addProjected(step, step.buffers.attended, layer.attention.output);
          layer.feedForward(step, normalizedInput(step, layer.feedForwardNorm));
        }
        writeOutputs(step, ends.output, { scale: 1, softcap: 0 });
      };
    },
  };
}

/** Its name has no suffix in files of this family. */
function readSecondNorm(loader: WeightLoader, layer: number, dim: number): number {
  const name = `blk.${layer}.ffn_norm`;
  return loader.vector(loader.has(`${name}.weight`) ? `${name}.weight` : name, dim);
}
