import type { ExpertRouting, ExpertsOp, Offset } from '../kernels/contract.ts';
import { addAdjusted, addProjected } from './decoder-blocks.ts';
import { type BlockInput, materialize } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import type { DecoderShape } from './types.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

/** How an architecture chooses experts. */
export type ExpertRules = Pick<ExpertRouting, 'scores' | 'isNormalized' | 'scale' | 'numGroups' | 'numUsedGroups'>;

export interface ExpertWeights {
  /** [numExperts][embeddingDim] */
  readonly router: Projection;
  /** [numExperts], added to the scores for the choice; null: none. */
  readonly choiceBias: Offset | null;
  /** The matrices of all experts: [numExperts × feedForwardDim][embeddingDim] */
  readonly gate: Projection;
  readonly up: Projection;
  /** [numExperts × embeddingDim][feedForwardDim] */
  readonly down: Projection;
  readonly shared: SharedExpert | null;
}

/** The expert that every token uses. */
export interface SharedExpert {
  /** [1][embeddingDim]: the logit of its weight; null: its weight is 1. */
  readonly router: Projection | null;
  readonly gate: Projection;
  readonly up: Projection;
  readonly down: Projection;
}

export function readExperts(loader: WeightLoader, layer: number, shape: DecoderShape): ExpertWeights {
  const { embeddingDim: dim } = shape;
  const { numExperts, feedForwardDim, sharedFeedForwardDim } = shape.experts!;
  const name = (part: string): string => `blk.${layer}.${part}`;
  const choiceBias = `${name('exp_probs_b')}.bias`;
  return {
    router: loader.projection(name('ffn_gate_inp'), numExperts, dim),
    choiceBias: loader.has(choiceBias) ? loader.vector(choiceBias, numExperts) : null,
    gate: loader.experts(name('ffn_gate_exps'), numExperts, feedForwardDim, dim),
    up: loader.experts(name('ffn_up_exps'), numExperts, feedForwardDim, dim),
    down: loader.experts(name('ffn_down_exps'), numExperts, dim, feedForwardDim),
    shared: sharedFeedForwardDim === 0 ? null : readShared(loader, name, dim, sharedFeedForwardDim),
  };
}

function readShared(
  loader: WeightLoader,
  name: (part: string) => string,
  dim: number,
  feedForwardDim: number,
): SharedExpert {
  const router = name('ffn_gate_inp_shexp');
  return {
    router: loader.has(`${router}.weight`) ? loader.experts(router, 1, 1, dim) : null,
    gate: loader.projection(name('ffn_gate_shexp'), feedForwardDim, dim),
    up: loader.projection(name('ffn_up_shexp'), feedForwardDim, dim),
    down: loader.projection(name('ffn_down_shexp'), dim, feedForwardDim),
  };
}

/** A shared expert with a weight of its own is a mixture of one. */
const ALONE: ExpertRouting = {
  numExperts: 1,
  numUsed: 1,
  scores: 'sigmoid',
  choiceBias: null,
  numGroups: 1,
  numUsedGroups: 1,
  isNormalized: false,
  scale: 1,
};

/** Rules of a layer, with its activation and the factor of its result. */
type LayerRules = ExpertRules & Pick<ExpertsOp, 'activation'> & { readonly residualScale: number };

/** residual += residualScale times the results of the chosen experts for the input, and of the shared one. */
export function addExperts(
  step: DecoderStep,
  input: BlockInput,
  weights: ExpertWeights,
  { activation, residualScale, ...rules }: LayerRules,
): void {
  const { pack, buffers, shape, numTokens } = step;
  const { numExperts, numUsed } = shape.experts!;
  const x = materialize(step, input);
  const { expertLogits: logits, expertScratch: scratch, residual: out } = buffers;
  const choose = (router: Projection): void =>
    pack.matmul({ x, norm: null, numTokens, outputs: [{ ...router, out: logits, accumulate: false }] });
  const { gate, up, down, shared, choiceBias } = weights;
  const common = { x, numTokens, logits, activation, out, scratch };
  choose(weights.router);
  const scale = rules.scale * residualScale;
  pack.experts({ ...common, routing: { ...rules, scale, numExperts, numUsed, choiceBias }, gate, up, down });
  if (shared === null) return;
  if (shared.router !== null) {
    choose(shared.router);
    const routing = { ...ALONE, scale: residualScale };
    pack.experts({ ...common, routing, gate: shared.gate, up: shared.up, down: shared.down });
    return;
  }
  const inner = { out: buffers.gate, scratch: buffers.up };
  pack.gatedMatmul({ x, numTokens, norm: null, gate: shared.gate, up: shared.up, ...inner, activation });
  if (residualScale === 1) addProjected(step, buffers.gate, shared.down);
  else addAdjusted(step, buffers.gate, shared.down, null, residualScale);
}
