import type { Decoder } from './architecture.ts';
import { type FeedForwardKind, readFeedForwardOf } from './create-decoder.ts';
import { addProjected, attend, type AttentionRule, embedTokens, writeOutputs } from './decoder-blocks.ts';
import { normalizedInput, type NormRule, readNorm } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import { readAttention, readEnds } from './decoder-weights.ts';
import { readLayerNormEpsilon } from './metadata-keys.ts';
import type { RopeVariant } from './rope.ts';
import type { DecoderShape, ModelFile } from './types.ts';
import type { WeightLoader } from './weight-loader.ts';

/** The differences between decoders whose two blocks have the same input. */
export interface ParallelRules {
  readonly ropes: readonly RopeVariant[];
  readonly attentionOf: (layer: number) => AttentionRule;
  readonly norm: 'layer' | 'biased-layer';
  readonly feedForward: FeedForwardKind;
  readonly logitScale: number;
}

/** A decoder where attention and feed-forward read the same normalized rows, and the residual gets both results. */
export function createParallelDecoder(file: ModelFile, rules: ParallelRules): Decoder {
  const norm: NormRule = { kind: rules.norm, epsilon: readLayerNormEpsilon(file) };
  return {
    ropes: rules.ropes,
    bind(loader) {
      const weights = readWeights(loader, file.shape, rules.feedForward, norm);
      return (step) => forward(step, rules, weights);
    },
  };
}

function readWeights(loader: WeightLoader, shape: DecoderShape, kind: FeedForwardKind, norm: NormRule) {
  return {
    ...readEnds(loader, shape, norm),
    layers: Array.from({ length: shape.numLayers }, (_, layer) => ({
      norm: readNorm(loader, `blk.${layer}.attn_norm`, shape.embeddingDim, norm),
      attention: readAttention(loader, layer, shape),
      feedForward: readFeedForwardOf(loader, layer, shape, kind),
    })),
  };
}

function forward(step: DecoderStep, rules: ParallelRules, weights: ReturnType<typeof readWeights>): void {
  embedTokens(step, weights.embedding, 1);
  for (const [index, { norm, attention, feedForward }] of weights.layers.entries()) {
    // A layer norm is computed into its own rows, so that the residual may change before the second block reads them.
    const input = normalizedInput(step, norm);
    attend(step, index, input, attention, rules.attentionOf(index));
    addProjected(step, step.buffers.attended, attention.output);
    feedForward.activate(step, input);
    addProjected(step, step.buffers.gate, feedForward.down);
  }
  writeOutputs(step, weights.output, { scale: rules.logitScale, softcap: 0 });
}
