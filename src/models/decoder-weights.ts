import type { Offset, WeightMatrix } from '../kernels/contract.ts';
import type { DecoderShape } from './types.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

export interface AttentionWeights {
  /** [numHeads × headDim][embeddingDim] */
  readonly q: Projection;
  /** [numKvHeads × headDim][embeddingDim] */
  readonly k: Projection;
  readonly v: Projection;
  /** [embeddingDim][numHeads × headDim] */
  readonly output: Projection;
  /** [headDim] norm before rotation; null: none. */
  readonly qNorm: Offset | null;
  readonly kNorm: Offset | null;
}

export interface FeedForwardWeights {
  /** [feedForwardDim][embeddingDim] */
  readonly gate: Projection;
  readonly up: Projection;
  /** [embeddingDim][feedForwardDim] */
  readonly down: Projection;
}

/** Three matrices, or one that stacks them. Reads head norms if `headNorms` is set. */
export function readAttention(
  loader: WeightLoader,
  layer: number,
  shape: DecoderShape,
  headNorms = false,
): AttentionWeights {
  const { embeddingDim, numHeads, numKvHeads, headDim } = shape;
  const name = (part: string): string => `blk.${layer}.attn_${part}`;
  const qRows = numHeads * headDim;
  const kvRows = numKvHeads * headDim;
  const [q, k, v] = loader.has(`${name('qkv')}.weight`)
    ? loader.splitProjection(name('qkv'), [qRows, kvRows, kvRows], embeddingDim, [name('q'), name('k'), name('v')])
    : [
        loader.projection(name('q'), qRows, embeddingDim),
        loader.projection(name('k'), kvRows, embeddingDim),
        loader.projection(name('v'), kvRows, embeddingDim),
      ];
  return {
    q,
    k,
    v,
    output: loader.projection(name('output'), embeddingDim, qRows),
    qNorm: headNorms ? loader.vector(`${name('q_norm')}.weight`, headDim) : null,
    kNorm: headNorms ? loader.vector(`${name('k_norm')}.weight`, headDim) : null,
  };
}

/** Gate and up separately, or stacked in ffn_up with the gate first. */
export function readFeedForward(loader: WeightLoader, layer: number, shape: DecoderShape): FeedForwardWeights {
  const { embeddingDim, feedForwardDim } = shape;
  const name = (part: string): string => `blk.${layer}.ffn_${part}`;
  const [gate, up] = loader.has(`${name('gate')}.weight`)
    ? [
        loader.projection(name('gate'), feedForwardDim, embeddingDim),
        loader.projection(name('up'), feedForwardDim, embeddingDim),
      ]
    : loader.splitProjection(name('up'), [feedForwardDim, feedForwardDim], embeddingDim, [name('gate'), name('up')]);
  return { gate, up, down: loader.projection(name('down'), embeddingDim, feedForwardDim) };
}

export function readNorm(loader: WeightLoader, layer: number, name: string, shape: DecoderShape): Offset {
  return loader.vector(`blk.${layer}.${name}.weight`, shape.embeddingDim);
}

export interface OutputWeights {
  /** [embeddingDim] */
  readonly norm: Offset;
  /** [vocabSize][embeddingDim] */
  readonly projection: Projection;
}

/** The embedding table [vocabSize][embeddingDim] and the output layer, which may be tied to the table. */
export function readEnds(
  loader: WeightLoader,
  shape: DecoderShape,
): { embedding: WeightMatrix; output: OutputWeights } {
  const { vocabSize, embeddingDim } = shape;
  const embedding = loader.matrix('token_embd.weight', vocabSize, embeddingDim);
  const norm = loader.vector('output_norm.weight', embeddingDim);
  const projection = loader.has('output.weight')
    ? loader.projection('output', vocabSize, embeddingDim)
    : { weight: embedding, bias: null, site: 'output' };
  return { embedding, output: { norm, projection } };
}
