import type { GatedActivationOp, Offset } from '../kernels/contract.ts';
import type { Decoder } from './architecture.ts';
import type { ModelFile, DecoderShape } from './types.ts';
import {
  activateGate,
  addNormalized,
  addProjected,
  attend,
  type AttentionRule,
  embedTokens,
  writeOutputs,
} from './decoder-blocks.ts';
import type { DecoderStep } from './decoder-step.ts';
import { readAttention, readEnds, readFeedForward, readNorm } from './decoder-weights.ts';
import { readEpsilon } from './metadata-keys.ts';
import type { RopeVariant } from './rope.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

/** The differences between decoder architectures with Llama's blocks. */
export interface DecoderRules {
  readonly ropes: readonly RopeVariant[];
  readonly attentionOf: (layer: number) => AttentionRule;
  /** Query and key heads are normalized before rotation. */
  readonly hasHeadNorms: boolean;
  /** The output of each block is normalized before it is added to the residual. */
  readonly hasPostNorms: boolean;
  readonly activation: GatedActivationOp['activation'];
  readonly embeddingScale: number;
  /** 0: off. */
  readonly logitSoftcap: number;
}

/** A decoder of attention and gated feed-forward blocks. */
export function createDecoder(file: ModelFile, rules: DecoderRules): Decoder {
  const epsilon = readEpsilon(file);
  return {
    ropes: rules.ropes,
    bind(loader) {
      const weights = readWeights(loader, file.shape, rules);
      return (step) => forward(step, rules, weights, epsilon);
    },
  };
}

function readWeights(loader: WeightLoader, shape: DecoderShape, { hasHeadNorms, hasPostNorms }: DecoderRules) {
  const postNorm = (layer: number, name: string): Offset | null =>
    hasPostNorms ? readNorm(loader, layer, name, shape) : null;
  return {
    ...readEnds(loader, shape),
    layers: Array.from({ length: shape.numLayers }, (_, layer) => ({
      attentionNorm: readNorm(loader, layer, 'attn_norm', shape),
      attention: readAttention(loader, layer, shape, hasHeadNorms),
      attentionPostNorm: postNorm(layer, 'post_attention_norm'),
      feedForwardNorm: readNorm(loader, layer, 'ffn_norm', shape),
      feedForward: readFeedForward(loader, layer, shape),
      feedForwardPostNorm: postNorm(layer, 'post_ffw_norm'),
    })),
  };
}

function forward(
  step: DecoderStep,
  { attentionOf, activation, embeddingScale, logitSoftcap }: DecoderRules,
  weights: ReturnType<typeof readWeights>,
  epsilon: number,
): void {
  const addOutput = (x: Offset, projection: Projection, postNorm: Offset | null): void =>
    postNorm === null ? addProjected(step, x, projection) : addNormalized(step, x, projection, postNorm, epsilon);
  embedTokens(step, weights.embedding, embeddingScale);
  for (const [index, layer] of weights.layers.entries()) {
    attend(step, index, layer.attentionNorm, layer.attention, attentionOf(index), epsilon);
    addOutput(step.buffers.attended, layer.attention.output, layer.attentionPostNorm);
    activateGate(step, layer.feedForwardNorm, layer.feedForward, activation, epsilon);
    addOutput(step.buffers.gate, layer.feedForward.down, layer.feedForwardPostNorm);
  }
  writeOutputs(step, weights.output, epsilon, logitSoftcap);
}
