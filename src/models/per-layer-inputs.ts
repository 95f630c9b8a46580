import { RuvLLMError } from '../core/errors.ts';
import type { Offset, WeightMatrix } from '../kernels/contract.ts';
import { type Norm, normalizeRows, type NormRule, readNorm } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import type { DecoderShape } from './types.ts';
import type { WeightLoader } from './weight-loader.ts';

/** Every layer has a small embedding of the token; it scales a narrow product of the layer's result. */
export interface PerLayerTables {
  /** Values of a token for one layer. */
  readonly dim: number;
  /** [vocabSize][numLayers × dim] */
  readonly table: WeightMatrix;
  /** [numLayers × dim][embeddingDim] */
  readonly fromEmbedding: WeightMatrix;
  readonly norm: Offset;
  readonly epsilon: number;
}

export interface PerLayerWeights {
  /** [dim][embeddingDim] */
  readonly gate: WeightMatrix;
  /** [embeddingDim][dim] */
  readonly output: WeightMatrix;
  readonly norm: Norm;
}

/** Buffers of a step: values per row. */
export const perLayerScratch = (dim: number, numLayers: number) => ({
  /** [numLayers][T][dim], and the same by token. */
  layerInputs: numLayers * dim,
  tokenInputs: numLayers * dim,
  layerGate: dim,
});

type PerLayerBuffers = Record<keyof ReturnType<typeof perLayerScratch>, Offset>;
const buffersOf = ({ buffers }: DecoderStep): PerLayerBuffers => buffers.scratch as PerLayerBuffers;

export function readPerLayerTables(
  loader: WeightLoader,
  { vocabSize, embeddingDim, numLayers }: DecoderShape,
  { dim, epsilon }: { readonly dim: number; readonly epsilon: number },
): PerLayerTables {
  return {
    dim,
    table: loader.matrix('per_layer_token_embd.weight', vocabSize, numLayers * dim),
    fromEmbedding: loader.matrix('per_layer_model_proj.weight', numLayers * dim, embeddingDim),
    norm: loader.vector('per_layer_proj_norm.weight', dim),
    epsilon,
  };
}

export function readPerLayer(
  loader: WeightLoader,
  layer: number,
  embeddingDim: number,
  { dim, norms }: { readonly dim: number; readonly norms: NormRule },
): PerLayerWeights {
  return {
    gate: loader.matrix(`blk.${layer}.inp_gate.weight`, dim, embeddingDim),
    output: loader.matrix(`blk.${layer}.proj.weight`, embeddingDim, dim),
    norm: readNorm(loader, `blk.${layer}.post_norm`, embeddingDim, norms),
  };
}

/** layerInputs = (the table's row * √dim + norm(product of the embedding)) / √2, for all layers. */
export function writeLayerInputs(
  step: DecoderStep,
  { dim, table, fromEmbedding, norm, epsilon }: PerLayerTables,
): void {
  const { pack, buffers, numTokens, shape } = step;
  const { layerInputs, tokenInputs } = buffersOf(step);
  const { numLayers, embeddingDim } = shape;
  const count = numTokens * numLayers * dim;
  const product = { weight: fromEmbedding, bias: null, out: layerInputs, accumulate: false };
  pack.matmul({ x: buffers.residual, norm: null, numTokens, outputs: [product] });
  pack.scale({ x: layerInputs, count, factor: 1 / Math.sqrt(embeddingDim) });
  const numRows = numTokens * numLayers;
  pack.rmsNorm({ x: layerInputs, weight: norm, out: layerInputs, numRows, dim, epsilon });
  pack.gatherRows({ table, ids: buffers.ids, out: tokenInputs, numRows: numTokens, scale: Math.sqrt(dim) });
  pack.add({ x: tokenInputs, y: layerInputs, out: tokenInputs, count });
  pack.scale({ x: tokenInputs, count, factor: Math.SQRT1_2 });
  const [from, to] = [
    { outer: numLayers * dim, inner: dim },
    { outer: dim, inner: numTokens * dim },
  ];
  pack.copyBlocks({ x: tokenInputs, out: layerInputs, numOuter: numTokens, numInner: numLayers, width: dim, from, to });
}

/** Rows of images have no embedding for each layer. Called before anything is recorded, because the next step would run it. */
export function refuseVectors({ vectors, shape }: DecoderStep): void {
  if (vectors.length === 0) return;
  throw new RuvLLMError(
    'unsupported',
    `${shape.architecture}: vectors instead of tokens are not supported (${vectors.length} runs)`,
    { data: { numRuns: vectors.length } },
  );
}

/** hidden = norm(output · (gelu(gate · x) * the layer's input)). */
export function multiplyLayerInput(
  step: DecoderStep,
  layer: number,
  x: Offset,
  { gate, output, norm }: PerLayerWeights,
): void {
  const { pack, buffers, numTokens } = step;
  const { layerInputs, layerGate } = buffersOf(step);
  const { hidden } = buffers;
  const count = numTokens * gate.numRows;
  pack.matmul({ x, norm: null, numTokens, outputs: [{ weight: gate, bias: null, out: layerGate, accumulate: false }] });
  const up = layerInputs + layer * count * 4;
  pack.gatedActivation({ gate: layerGate, up, out: layerGate, count, activation: 'gelu' });
  const outputs = [{ weight: output, bias: null, out: hidden, accumulate: false }];
  pack.matmul({ x: layerGate, norm: null, numTokens, outputs });
  normalizeRows(step, norm, hidden, hidden, numTokens);
}
