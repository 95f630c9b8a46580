import type { BlockStrides, Offset, WeightMatrix } from '../kernels/contract.ts';
import { multiplyInput } from './decoder-blocks.ts';
import type { BlockInput } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import type { DecoderShape, LatentShape } from './types.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

/**
 * Multi-head latent attention (DeepSeek V2, §2.1). A token's page slot holds one row for all heads: the rotated part of the key,
 * then the latent vector. Queries are multiplied into the space of latent vectors, so a row is the key and the value of every head.
 */
export interface LatentWeights {
  /** [numHeads × (plainDim + rotaryDim)] rows; from the input, or from `queryDown`'s result. */
  readonly query: Projection;
  /** [queryRank][embeddingDim] and the norm of its result; null: none. */
  readonly queryDown: { readonly projection: Projection; readonly norm: Offset } | null;
  /** [rank][embeddingDim] */
  readonly latent: Projection;
  readonly latentNorm: Offset;
  /** [rotaryDim][embeddingDim] */
  readonly rotatedKey: Projection;
  /** [rank][plainDim] of each head. */
  readonly toLatent: readonly WeightMatrix[];
  /** [valueDim][rank] of each head. */
  readonly fromLatent: readonly WeightMatrix[];
  /** [embeddingDim][numHeads × valueDim] */
  readonly output: Projection;
}

/** Buffers of a step: values per row. */
export function latentScratch({ numHeads, latent }: DecoderShape): Record<(typeof BUFFERS)[number], number> {
  const { rank, queryRank, rotaryDim, plainDim, valueDim } = latent!;
  return {
    latentQuery: numHeads * Math.max(plainDim + rotaryDim, valueDim),
    latentQueryDown: queryRank,
    latentRow: rank,
    latentKey: rotaryDim,
    latentPlain: numHeads * Math.max(plainDim, valueDim),
    latentHeads: numHeads * rank,
  };
}

const BUFFERS = ['latentQuery', 'latentQueryDown', 'latentRow', 'latentKey', 'latentPlain', 'latentHeads'] as const;

export function readLatentAttention(loader: WeightLoader, layer: number, shape: DecoderShape): LatentWeights {
  const { embeddingDim, numHeads } = shape;
  const { rank, queryRank, rotaryDim, plainDim, valueDim } = shape.latent!;
  const name = (part: string): string => `blk.${layer}.attn_${part}`;
  const queryRows = numHeads * (plainDim + rotaryDim);
  const rows = [rank, rotaryDim] as const;
  const sites = [`${name('kv_a_mqa')}.latent`, `${name('kv_a_mqa')}.key`] as const;
  const [latent, rotatedKey] = loader.splitProjection(name('kv_a_mqa'), rows, embeddingDim, sites);
  const hasQueryRank = queryRank > 0;
  return {
    query: hasQueryRank
      ? loader.projection(name('q_b'), queryRows, queryRank)
      : loader.projection(name('q'), queryRows, embeddingDim),
    queryDown: hasQueryRank
      ? {
          projection: loader.projection(name('q_a'), queryRank, embeddingDim),
          norm: loader.vector(`${name('q_a_norm')}.weight`, queryRank),
        }
      : null,
    latent,
    latentNorm: loader.vector(`${name('kv_a_norm')}.weight`, rank),
    rotatedKey,
    ...readHeads(loader, name, numHeads, shape.latent!),
    output: loader.projection(name('output'), embeddingDim, numHeads * valueDim),
  };
}

/** Old files have one matrix from latent vectors to keys and values of all heads. */
function readHeads(
  loader: WeightLoader,
  name: (part: string) => string,
  numHeads: number,
  { rank, plainDim, valueDim }: LatentShape,
): Pick<LatentWeights, 'toLatent' | 'fromLatent'> {
  const stacked = `${name('kv_b')}.weight`;
  if (!loader.has(stacked)) {
    return {
      toLatent: loader.stack(`${name('k_b')}.weight`, numHeads, rank, plainDim),
      fromLatent: loader.stack(`${name('v_b')}.weight`, numHeads, valueDim, rank),
    };
  }
  const parts = Array.from({ length: numHeads }, () => [plainDim, valueDim]).flat();
  const heads = Array.from({ length: numHeads }, (_, head) => head);
  return {
    toLatent: heads.map((head) => loader.transposedPart(stacked, parts, 2 * head, rank)),
    fromLatent: heads.map((head) => loader.part(stacked, parts, 2 * head + 1, rank)),
  };
}

/** Computes attention over the input; returns the input of the output matrix, [numTokens][numHeads × valueDim]. */
export function attendLatent(
  step: DecoderStep,
  layer: number,
  input: BlockInput,
  weights: LatentWeights,
  { scale, epsilon }: { readonly scale: number; readonly epsilon: number },
): Offset {
  const { pack, buffers, shape, numTokens } = step;
  const { numHeads, headDim } = shape;
  const { rank, rotaryDim, plainDim, valueDim } = shape.latent!;
  const at = buffers.scratch as Record<(typeof BUFFERS)[number], Offset>;
  const { q, k, attended } = buffers;
  projectInput(step, input, weights, epsilon);
  // Rows and queries have the rotated part first: packs rotate the first values of a head.
  const copy = (
    x: Offset,
    out: Offset,
    width: number,
    from: BlockStrides,
    to: BlockStrides,
    numInner = numHeads,
  ): void => pack.copyBlocks({ x, out, numOuter: numTokens, numInner, width, from, to });
  const ofRows = (width: number): BlockStrides => ({ outer: width, inner: width });
  copy(at.latentKey, k, rotaryDim, ofRows(rotaryDim), ofRows(headDim), 1);
  copy(at.latentRow, k + rotaryDim * 4, rank, ofRows(rank), ofRows(headDim), 1);
  const ofQueries = headsOfTokens(numHeads, plainDim + rotaryDim);
  const ofCached = headsOfTokens(numHeads, headDim);
  copy(at.latentQuery + plainDim * 4, q, rotaryDim, ofQueries, ofCached);
  copy(at.latentQuery, at.latentPlain, plainDim, ofQueries, tokensOfHeads(numTokens, plainDim));
  multiplyHeads(step, at.latentPlain, weights.toLatent, at.latentHeads);
  copy(at.latentHeads, q + rotaryDim * 4, rank, tokensOfHeads(numTokens, rank), ofCached);
  attendRows(step, layer, scale);
  copy(attended + rotaryDim * 4, at.latentHeads, rank, ofCached, tokensOfHeads(numTokens, rank));
  multiplyHeads(step, at.latentHeads, weights.fromLatent, at.latentPlain);
  copy(at.latentPlain, at.latentQuery, valueDim, tokensOfHeads(numTokens, valueDim), headsOfTokens(numHeads, valueDim));
  return at.latentQuery;
}

const headsOfTokens = (numHeads: number, width: number): BlockStrides => ({ outer: numHeads * width, inner: width });
const tokensOfHeads = (numTokens: number, width: number): BlockStrides => ({ outer: width, inner: numTokens * width });

/** latentQuery, latentRow and latentKey from the input. */
function projectInput(step: DecoderStep, input: BlockInput, weights: LatentWeights, epsilon: number): void {
  const { pack, buffers, shape, numTokens } = step;
  const { rank, queryRank } = shape.latent!;
  const at = buffers.scratch as Record<(typeof BUFFERS)[number], Offset>;
  const { query, queryDown, latent, rotatedKey } = weights;
  multiplyInput(step, input, [
    queryDown === null ? { ...query, out: at.latentQuery } : { ...queryDown.projection, out: at.latentQueryDown },
    { ...latent, out: at.latentRow },
    { ...rotatedKey, out: at.latentKey },
  ]);
  const normalize = (x: Offset, weight: Offset, dim: number): void =>
    pack.rmsNorm({ x, weight, out: x, numRows: numTokens, dim, epsilon });
  normalize(at.latentRow, weights.latentNorm, rank);
  if (queryDown === null) return;
  normalize(at.latentQueryDown, queryDown.norm, queryRank);
  multiplyInput(step, { x: at.latentQueryDown, norm: null }, [{ ...query, out: at.latentQuery }]);
}

/** out[head] = weights[head] · x[head] for all tokens. */
function multiplyHeads(
  { pack, numTokens }: DecoderStep,
  x: Offset,
  weights: readonly WeightMatrix[],
  out: Offset,
): void {
  for (const [head, weight] of weights.entries()) {
    const { numRows, numCols } = weight;
    pack.matmul({
      x: x + head * numTokens * numCols * 4,
      norm: null,
      numTokens,
      outputs: [{ weight, bias: null, out: out + head * numTokens * numRows * 4, accumulate: false }],
    });
  }
}

/** attended = attention of the queries in `q` over the rows in pages, after those in `k` are rotated and written there. */
function attendRows(step: DecoderStep, layer: number, scale: number): void {
  const { pack, buffers, shape, numTokens, numSequences } = step;
  const place = step.kvLayers[layer]!;
  const { numHeads, headDim } = shape;
  const { q, k, slots, sequences, pageTables } = buffers;
  const { pairing, rotaryDim } = step.ropes[0]!;
  const angles = { cosSin: buffers.cosSin[0]!, numTokens, headDim, rotaryDim, pairing };
  pack.rope({ ...angles, x: q, numHeads });
  pack.rope({ ...angles, x: k, numHeads: 1 });
  pack.writeKv({ ...place, k, v: k, slots, numTokens });
  const rows = { sequences, numSequences, pageTables };
  const plain = { window: 0, softcap: 0 };
  pack.attention({ ...place, q, out: buffers.attended, numHeads, ...rows, scale, ...plain });
}
