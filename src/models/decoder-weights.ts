import type { Offset, WeightMatrix } from '../kernels/contract.ts';
import { type Norm, type NormRule, readNorm } from './decoder-norms.ts';
import type { DecoderShape } from './types.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

export interface AttentionWeights {
  /** [numHeads × headDim][embeddingDim] */
  readonly q: Projection;
  /** [numKvHeads × headDim][embeddingDim] */
  readonly k: Projection;
  /** Null: values are the keys before their norm and rotation. */
  readonly v: Projection | null;
  /** [embeddingDim][numHeads × headDim] */
  readonly output: Projection;
  /** Norms before rotation: [headDim], or the whole row of all heads; null: none. */
  readonly qNorm: Offset | null;
  readonly kNorm: Offset | null;
  /** [headDim]: values are normalized, too. Default null: they are not. */
  readonly vNorm?: Offset | null;
  /** [numHeads] scores without values; null: none. */
  readonly sinks: Offset | null;
}

/** Whether each query and key head is normalized, the row of all heads together, or neither. */
export type HeadNorms = 'each' | 'together' | 'none';

export interface FeedForwardWeights {
  /** [feedForwardDim][embeddingDim] */
  readonly gate: Projection;
  readonly up: Projection;
  /** [embeddingDim][feedForwardDim] */
  readonly down: Projection;
}

/** Three matrices, or one that stacks them, the norms of heads and their sinks. */
export function readAttention(
  loader: WeightLoader,
  layer: number,
  shape: DecoderShape,
  { headNorms = 'none', hasSinks = false }: { headNorms?: HeadNorms; hasSinks?: boolean } = {},
): AttentionWeights & { readonly v: Projection } {
  const { embeddingDim, numHeads, numKvHeads, headDim } = shape;
  const name = (part: string): string => `blk.${layer}.attn_${part}`;
  const qRows = numHeads * headDim;
  const kvRows = numKvHeads * headDim;
  const headNorm = (part: string, numRows: number): Offset | null =>
    headNorms === 'none' ? null : loader.vector(`${name(part)}.weight`, headNorms === 'each' ? headDim : numRows);
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
    qNorm: headNorm('q_norm', qRows),
    kNorm: headNorm('k_norm', kvRows),
    sinks: hasSinks ? loader.vector(`${name('sinks')}.weight`, numHeads) : null,
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

/** A feed-forward layer without a gate. */
export type PlainFeedForwardWeights = Omit<FeedForwardWeights, 'gate'>;

export function readPlainFeedForward(
  loader: WeightLoader,
  layer: number,
  shape: DecoderShape,
): PlainFeedForwardWeights {
  const { embeddingDim, feedForwardDim } = shape;
  return {
    up: loader.projection(`blk.${layer}.ffn_up`, feedForwardDim, embeddingDim),
    down: loader.projection(`blk.${layer}.ffn_down`, embeddingDim, feedForwardDim),
  };
}

export interface OutputWeights {
  readonly norm: Norm;
  /** [vocabSize][embeddingDim] */
  readonly projection: Projection;
}

/** The embedding table [vocabSize][embeddingDim] and the output layer, which may be tied to the table. */
export function readEnds(
  loader: WeightLoader,
  shape: DecoderShape,
  rule: NormRule,
): { embedding: WeightMatrix; output: OutputWeights } {
  const { vocabSize, embeddingDim } = shape;
  const embedding = loader.matrix('token_embd.weight', vocabSize, embeddingDim);
  const norm = readNorm(loader, 'output_norm', embeddingDim, rule);
  const projection = loader.has('output.weight')
    ? loader.projection('output', vocabSize, embeddingDim)
    : { weight: embedding, bias: null, site: 'output' };
  return { embedding, output: { norm, projection } };
}
