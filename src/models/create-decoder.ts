import { assert } from '../core/errors.ts';
import type { GatedActivationOp, Offset } from '../kernels/contract.ts';
import type { Decoder } from './architecture.ts';
import type { ModelFile, DecoderShape } from './types.ts';
import {
  activateGate,
  activatePlain,
  addAdjusted,
  addProjected,
  attend,
  type AttentionRule,
  embedTokens,
  writeOutputs,
} from './decoder-blocks.ts';
import { type BlockInput, type Norm, normalizedInput, type NormRule, readNorm } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import { type HeadNorms, readAttention, readEnds, readFeedForward, readPlainFeedForward } from './decoder-weights.ts';
import { addExperts, type ExpertRules, readExperts } from './experts.ts';
import { readEpsilon, readLayerNormEpsilon } from './metadata-keys.ts';
import type { RopeVariant } from './rope.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

/** The differences between decoder architectures with Llama's order of blocks; defaults are Llama's. */
export interface DecoderRules {
  readonly ropes: readonly RopeVariant[];
  readonly attentionOf: (layer: number) => AttentionRule;
  /** Default `rms`. */
  readonly norm?: NormRule['kind'];
  /** Norms of query and key heads before rotation; default none. */
  readonly headNorms?: HeadNorms;
  /** Whether the input of each block is normalized, its output before it is added to the residual, or both. Default input. */
  readonly blockNorms?: 'input' | 'output' | 'both';
  /** The norm before the feed-forward block, by its name in files. Default ffn_norm. */
  readonly feedForwardNorm?: string;
  /** Default gated by silu. */
  readonly feedForward?: FeedForwardKind;
  /** The choice of experts; default null: no mixture. */
  readonly experts?: ExpertRules | null;
  /** Every head's softmax has a score without a value. Default false. */
  readonly hasSinks?: boolean;
  /** Factors; default 1. */
  readonly embeddingScale?: number;
  readonly residualScale?: number;
  readonly logitScale?: number;
  /** Default 0: off. */
  readonly logitSoftcap?: number;
}

/** A gate with its activation, or no gate. */
export type FeedForwardKind = GatedActivationOp['activation'] | 'plain-gelu';

const LLAMA = {
  norm: 'rms',
  headNorms: 'none',
  blockNorms: 'input',
  feedForwardNorm: 'ffn_norm',
  feedForward: 'silu',
  experts: null,
  hasSinks: false,
  embeddingScale: 1,
  residualScale: 1,
  logitScale: 1,
  logitSoftcap: 0,
} as const satisfies Partial<DecoderRules>;

/** A decoder of attention and feed-forward blocks, one after the other. */
export function createDecoder(file: ModelFile, differences: DecoderRules): Decoder {
  const rules: Required<DecoderRules> = { ...LLAMA, ...differences };
  const norm: NormRule = {
    kind: rules.norm,
    epsilon: rules.norm === 'rms' ? readEpsilon(file) : readLayerNormEpsilon(file),
  };
  return {
    ropes: rules.ropes,
    bind(loader) {
      const weights = readWeights(loader, file.shape, rules, norm);
      return (step) => forward(step, rules, weights, norm.epsilon);
    },
  };
}

function readWeights(loader: WeightLoader, shape: DecoderShape, rules: Required<DecoderRules>, rule: NormRule) {
  const { blockNorms, headNorms, hasSinks, feedForward } = rules;
  const firstExperts = rules.experts === null ? shape.numLayers : (shape.experts?.numDenseLayers ?? 0);
  const norm = (layer: number, side: 'input' | 'output', name: string): Norm | null =>
    blockNorms === side || blockNorms === 'both'
      ? readNorm(loader, `blk.${layer}.${name}`, shape.embeddingDim, rule)
      : null;
  return {
    ...readEnds(loader, shape, rule),
    layers: Array.from({ length: shape.numLayers }, (_, layer) => ({
      attentionNorm: norm(layer, 'input', 'attn_norm'),
      attention: readAttention(loader, layer, shape, { headNorms, hasSinks }),
      attentionPostNorm: norm(layer, 'output', 'post_attention_norm'),
      feedForwardNorm: norm(layer, 'input', rules.feedForwardNorm),
      ...(layer < firstExperts
        ? { feedForward: readFeedForwardOf(loader, layer, shape, feedForward), experts: null }
        : { feedForward: null, experts: readExperts(loader, layer, shape) }),
      feedForwardPostNorm: norm(layer, 'output', 'post_ffw_norm'),
    })),
  };
}

/** The weights of a feed-forward layer, and its activation of a block's input in `gate`. */
export function readFeedForwardOf(loader: WeightLoader, layer: number, shape: DecoderShape, kind: FeedForwardKind) {
  if (kind === 'plain-gelu') {
    const weights = readPlainFeedForward(loader, layer, shape);
    return { down: weights.down, activate: (step: DecoderStep, x: BlockInput) => activatePlain(step, x, weights) };
  }
  const weights = readFeedForward(loader, layer, shape);
  return { down: weights.down, activate: (step: DecoderStep, x: BlockInput) => activateGate(step, x, weights, kind) };
}

/** Experts have gates in all mixtures. */
function expertActivation({ feedForward }: Required<DecoderRules>): GatedActivationOp['activation'] {
  assert(feedForward !== 'plain-gelu', 'experts without a gate');
  return feedForward;
}

function forward(
  step: DecoderStep,
  rules: Required<DecoderRules>,
  weights: ReturnType<typeof readWeights>,
  epsilon: number,
): void {
  const { attentionOf, headNorms, embeddingScale, residualScale, logitScale, logitSoftcap } = rules;
  const addOutput = (x: Offset, projection: Projection, postNorm: Norm | null): void =>
    postNorm === null && residualScale === 1
      ? addProjected(step, x, projection)
      : addAdjusted(step, x, projection, postNorm, residualScale);
  embedTokens(step, weights.embedding, embeddingScale);
  for (const [index, layer] of weights.layers.entries()) {
    const { attention, feedForward, experts } = layer;
    const headNormRule = { over: headNorms, epsilon };
    attend(step, index, normalizedInput(step, layer.attentionNorm), attention, attentionOf(index), headNormRule);
    addOutput(step.buffers.attended, attention.output, layer.attentionPostNorm);
    const input = normalizedInput(step, layer.feedForwardNorm);
    if (experts !== null) {
      addExperts(step, input, experts, { ...rules.experts!, activation: expertActivation(rules), residualScale });
      continue;
    }
    feedForward.activate(step, input);
    addOutput(step.buffers.gate, feedForward.down, layer.feedForwardPostNorm);
  }
  writeOutputs(step, weights.output, { scale: logitScale, softcap: logitSoftcap });
}
