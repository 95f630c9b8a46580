import type { ExpertRouting, Offset } from '../kernels/contract.ts';
import { activateGate } from './decoder-blocks.ts';
import { type Norm, normalizedInput, normalizeRows, type NormRule, readNorm } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import type { FeedForwardWeights } from './decoder-weights.ts';
import type { DecoderShape } from './types.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

/** The experts of a layer of Gemma 4, beside its dense feed-forward layer. Each has norms of its own. */
export interface MixtureWeights {
  /** [numExperts][embeddingDim] */
  readonly router: Projection;
  /** [embeddingDim], of the router's input. */
  readonly routerScale: Offset;
  readonly gate: Projection;
  readonly up: Projection;
  readonly down: Projection;
  /** [numExperts]; null: none. */
  readonly expertScales: Offset | null;
  readonly inputNorm: Norm;
  readonly densePostNorm: Norm;
  readonly postNorm: Norm;
  /** [embeddingDim], the start of the experts' sum. */
  readonly zeros: Offset;
}

/** Buffers of a step: values per row. */
export const mixtureScratch = (embeddingDim: number) => ({ dense: embeddingDim, mixture: embeddingDim });

type MixtureBuffers = Record<keyof ReturnType<typeof mixtureScratch>, Offset>;

export function readMixture(
  loader: WeightLoader,
  layer: number,
  { embeddingDim: dim, experts }: DecoderShape,
  norms: NormRule,
): MixtureWeights {
  const { numExperts, feedForwardDim } = experts!;
  const name = (part: string): string => `blk.${layer}.${part}`;
  const [gateName, upName, scales] = [name('ffn_gate_exps'), name('ffn_up_exps'), name('ffn_down_exps.scale')];
  const [gate, up] = loader.has(`${gateName}.weight`)
    ? [
        loader.experts(gateName, numExperts, feedForwardDim, dim),
        loader.experts(upName, numExperts, feedForwardDim, dim),
      ]
    : loader.splitExperts(name('ffn_gate_up_exps'), numExperts, [feedForwardDim, feedForwardDim], dim, [
        gateName,
        upName,
      ]);
  return {
    router: loader.projection(name('ffn_gate_inp'), numExperts, dim),
    routerScale: loader.vector(name('ffn_gate_inp.scale'), dim),
    gate,
    up,
    down: loader.experts(name('ffn_down_exps'), numExperts, dim, feedForwardDim),
    expertScales: loader.has(scales) ? loader.vector(scales, numExperts) : null,
    inputNorm: readNorm(loader, name('pre_ffw_norm_2'), dim, norms),
    densePostNorm: readNorm(loader, name('post_ffw_norm_1'), dim, norms),
    postNorm: readNorm(loader, name('post_ffw_norm_2'), dim, norms),
    zeros: loader.zeros(dim),
  };
}

const ROUTING: Omit<ExpertRouting, 'numExperts' | 'numUsed'> = {
  scores: 'softmax',
  choiceBias: null,
  numGroups: 1,
  numUsedGroups: 1,
  isNormalized: true,
  scale: 1,
};

/** hidden = norm(dense layer) + norm(mixture), both of the residual stream. */
export function computeMixture(
  step: DecoderStep,
  denseNorm: Norm,
  dense: FeedForwardWeights,
  weights: MixtureWeights,
): void {
  const { pack, buffers, numTokens, shape } = step;
  const { hidden, gate } = buffers;
  const scratch = buffers.scratch as MixtureBuffers;
  const count = numTokens * shape.embeddingDim;
  activateGate(step, normalizedInput(step, denseNorm), dense, 'gelu');
  pack.matmul({ x: gate, norm: null, numTokens, outputs: [{ ...dense.down, out: scratch.dense, accumulate: false }] });
  normalizeRows(step, weights.densePostNorm, scratch.dense, scratch.dense, numTokens);
  chooseExperts(step, weights);
  normalizeRows(step, weights.inputNorm, buffers.residual, hidden, numTokens);
  addUpExperts(step, weights, scratch.mixture);
  normalizeRows(step, weights.postNorm, scratch.mixture, scratch.mixture, numTokens);
  pack.add({ x: scratch.dense, y: scratch.mixture, out: hidden, count });
}

/** expertLogits = router · (norm(residual) * scale / √dim). */
function chooseExperts({ pack, buffers, numTokens, shape }: DecoderStep, weights: MixtureWeights): void {
  const { residual, hidden, expertLogits } = buffers;
  const { embeddingDim: dim } = shape;
  const { epsilon } = weights.inputNorm;
  pack.rmsNorm({ x: residual, weight: weights.routerScale, out: hidden, numRows: numTokens, dim, epsilon });
  pack.scale({ x: hidden, count: numTokens * dim, factor: 1 / Math.sqrt(dim) });
  const outputs = [{ ...weights.router, out: expertLogits, accumulate: false }];
  pack.matmul({ x: hidden, norm: null, numTokens, outputs });
}

/** out = the sum of the chosen experts' results for `hidden`. */
function addUpExperts({ pack, buffers, numTokens, shape }: DecoderStep, weights: MixtureWeights, out: Offset): void {
  const { embeddingDim: width, experts } = shape;
  const { numExperts, numUsed } = experts!;
  const { gate, up, down, expertScales, zeros } = weights;
  const [from, to] = [
    { outer: 0, inner: 0 },
    { outer: width, inner: 0 },
  ];
  pack.copyBlocks({ x: zeros, out, numOuter: numTokens, numInner: 1, width, from, to });
  pack.experts({
    x: buffers.hidden,
    numTokens,
    logits: buffers.expertLogits,
    routing: { ...ROUTING, numExperts, numUsed, expertScales },
    gate,
    up,
    down,
    activation: 'gelu',
    out,
    scratch: buffers.expertScratch,
  });
}
