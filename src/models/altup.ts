import type { Offset, WeightMatrix } from '../kernels/contract.ts';
import { normalizeRows, type Norm, type NormRule, readNorm } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import type { WeightLoader } from './weight-loader.ts';

/** Alternating updates (Baykal et al., 2023): several residual streams, of which a layer computes only one. */
export interface AltUpShape {
  readonly numStreams: number;
  /** The stream that layers compute. */
  readonly active: number;
}

/** Matrices of one layer that predict and correct the streams. */
export interface AltUpWeights {
  /** [numStreams][embeddingDim] */
  readonly router: WeightMatrix;
  readonly routerNorm: Norm;
  /** [numStreams × numStreams][numStreams] */
  readonly predict: WeightMatrix;
  /** [numStreams][numStreams] */
  readonly correct: WeightMatrix;
}

/** One matrix for each stream but the active one. */
export interface AltUpEnds {
  readonly spread: readonly WeightMatrix[];
  readonly merge: readonly WeightMatrix[];
}

/** Buffers of a step: values per row. */
export const altUpScratch = ({ numStreams }: AltUpShape, embeddingDim: number) => ({
  /** [numStreams][T][embeddingDim], like the predictions. */
  streams: numStreams * embeddingDim,
  predictions: numStreams * embeddingDim,
  innovation: embeddingDim,
  modalities: numStreams,
  coefficients: numStreams * numStreams,
});

type AltUpBuffers = Record<keyof ReturnType<typeof altUpScratch>, Offset>;
const buffersOf = ({ buffers }: DecoderStep): AltUpBuffers => buffers.scratch as AltUpBuffers;

export function readAltUpEnds(loader: WeightLoader, { numStreams }: AltUpShape, dim: number): AltUpEnds {
  return {
    spread: loader.stack('altup_proj.weight', numStreams - 1, dim, dim),
    merge: loader.stack('altup_unembd_proj.weight', numStreams - 1, dim, dim),
  };
}

export function readAltUp(
  loader: WeightLoader,
  layer: number,
  { numStreams }: AltUpShape,
  { dim, norms }: { readonly dim: number; readonly norms: NormRule },
): AltUpWeights {
  const name = (part: string): string => `blk.${layer}.altup_${part}`;
  return {
    router: loader.matrix(`${name('router')}.weight`, numStreams, dim),
    routerNorm: readNorm(loader, name('router_norm'), dim, norms),
    predict: loader.matrix(`${name('predict_coef')}.weight`, numStreams * numStreams, numStreams),
    correct: loader.matrix(`${name('correct_coef')}.weight`, numStreams, numStreams),
  };
}

/** The rows of one stream. */
export const streamAt = ({ numTokens, shape }: DecoderStep, streams: Offset, stream: number): Offset =>
  streams + stream * numTokens * shape.embeddingDim * 4;

/** The first stream is the residual; the others are its products, with the same length. */
export function spreadStreams(step: DecoderStep, { spread }: AltUpEnds): void {
  const { buffers } = step;
  const { streams } = buffersOf(step);
  copyRows(step, buffers.residual, streams);
  for (const [i, weight] of spread.entries()) {
    const out = streamAt(step, streams, i + 1);
    multiply(step, buffers.residual, weight, out);
    matchLengths(step, out, buffers.residual);
  }
}

/** residual = the mean of the first stream and the products of the others, with the length of the active one. */
export function mergeStreams(step: DecoderStep, { merge }: AltUpEnds, { numStreams, active }: AltUpShape): void {
  const { pack, buffers, numTokens, shape } = step;
  const { residual, hidden } = buffers;
  const { streams } = buffersOf(step);
  const count = numTokens * shape.embeddingDim;
  copyRows(step, streams, residual);
  for (const [i, weight] of merge.entries()) {
    multiply(step, streamAt(step, streams, i + 1), weight, hidden);
    matchLengths(step, hidden, streamAt(step, streams, active));
    pack.add({ x: residual, y: hidden, out: residual, count });
  }
  pack.scale({ x: residual, count, factor: 1 / numStreams });
}

/** predictions[i] = streams[i] + the sum of coefficients[i][j] * streams[j]; returns the active prediction. */
export function predictStreams(step: DecoderStep, weights: AltUpWeights, { numStreams, active }: AltUpShape): Offset {
  const { streams, predictions, coefficients } = buffersOf(step);
  routeRows(step, streamAt(step, streams, active), weights, weights.predict);
  const sizes = { numOut: numStreams, numIn: numStreams, numRows: step.numTokens, dim: step.shape.embeddingDim };
  step.pack.mixStreams({ base: streams, x: streams, coefficients, shift: 0, out: predictions, ...sizes });
  return streamAt(step, predictions, active);
}

/** streams[i] = predictions[i] + (1 + coefficients[i]) * (residual - the active prediction). */
export function correctStreams(step: DecoderStep, weights: AltUpWeights, { numStreams, active }: AltUpShape): void {
  const { pack, buffers, numTokens, shape } = step;
  const { streams, predictions, innovation, coefficients } = buffersOf(step);
  const count = numTokens * shape.embeddingDim;
  routeRows(step, buffers.residual, weights, weights.correct);
  copyRows(step, streamAt(step, predictions, active), innovation);
  pack.scale({ x: innovation, count, factor: -1 });
  pack.add({ x: innovation, y: buffers.residual, out: innovation, count });
  const sizes = { numOut: numStreams, numIn: 1, numRows: numTokens, dim: shape.embeddingDim };
  pack.mixStreams({ base: predictions, x: innovation, coefficients, shift: 1, out: streams, ...sizes });
}

/** coefficients = weight · tanh(router · norm(x) / embeddingDim). */
function routeRows(step: DecoderStep, x: Offset, { router, routerNorm }: AltUpWeights, weight: WeightMatrix): void {
  const { pack, buffers, numTokens, shape } = step;
  const { modalities, coefficients } = buffersOf(step);
  const { hidden } = buffers;
  normalizeRows(step, routerNorm, x, hidden, numTokens);
  pack.scale({ x: hidden, count: numTokens * shape.embeddingDim, factor: 1 / shape.embeddingDim });
  multiply(step, hidden, router, modalities);
  pack.softcap({ x: modalities, count: numTokens * router.numRows, cap: 1 });
  multiply(step, modalities, weight, coefficients);
}

function multiply({ pack, numTokens }: DecoderStep, x: Offset, weight: WeightMatrix, out: Offset): void {
  pack.matmul({ x, norm: null, numTokens, outputs: [{ weight, bias: null, out, accumulate: false }] });
}

function matchLengths({ pack, numTokens, shape }: DecoderStep, x: Offset, target: Offset): void {
  pack.matchLengths({ x, target, numRows: numTokens, dim: shape.embeddingDim });
}

function copyRows({ pack, numTokens, shape }: DecoderStep, x: Offset, out: Offset): void {
  const width = shape.embeddingDim;
  const strides = { outer: width, inner: 0 };
  pack.copyBlocks({ x, out, numOuter: numTokens, numInner: 1, width, from: strides, to: strides });
}
