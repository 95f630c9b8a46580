import {
  type Arena,
  alignArena,
  MAX_RANK,
  MAX_TOP,
  type Offset,
  PAGE_TOKENS,
  TOP_STATS,
  topScratch,
} from '../kernels/contract.ts';
import { MAX_PACK_MOVES } from './kv-page-store.ts';
import type { RopeVariant } from './rope.ts';
import { MAX_STACKED_ADAPTERS } from './types.ts';
import type { DecoderShape, ModelLimits } from './types.ts';

/** Number of 4-byte elements of each buffer of a step; T rows, S sequences, L rows with logits. */
export function activationSizes(shape: DecoderShape, limits: ModelLimits, maxContextTokens: number) {
  const { maxBatchTokens: T, maxSequences: S, maxLogitRows: L } = limits;
  const { embeddingDim, feedForwardDim, numHeads, numKvHeads, headDim, isCausal } = shape;
  const vocabSize = isCausal ? shape.vocabSize : 0;
  const hasPackedPages = (limits.packedPrecision ?? null) !== null;
  return {
    ids: T,
    slots: T,
    sequences: S * 4,
    pageTables: S * Math.ceil(maxContextTokens / PAGE_TOKENS),
    /** Pages to pack, with their destinations. */
    packMoves: hasPackedPages ? MAX_PACK_MOVES * 2 : 0,
    logitRows: L,
    hiddenRows: T,
    /** Learned positions, and token types, which are always 0. Rotated positions are angles. */
    positions: isCausal ? 0 : T,
    tokenTypes: isCausal ? 0 : T,
    /** The residual stream, [T][embeddingDim]. */
    residual: T * embeddingDim,
    /** Normalized input of a block, or its output if that is normalized too; finally the requested hidden states. */
    hidden: T * embeddingDim,
    /** [T][numHeads][headDim] */
    q: T * numHeads * headDim,
    /** [T][numKvHeads][headDim] */
    k: T * numKvHeads * headDim,
    v: T * numKvHeads * headDim,
    /** Output of attention, [T][numHeads][headDim]. */
    attended: T * numHeads * headDim,
    /** [T][feedForwardDim] */
    gate: T * feedForwardDim,
    up: T * feedForwardDim,
    /** Rows of the residual stream with requested logits, [L][embeddingDim]. */
    picked: L * embeddingDim,
    /** [L][vocabSize] */
    logits: L * vocabSize,
    /** The top logits of each row, [L][numTop], and the other buffers of `topLogits`. */
    topValues: L * Math.min(MAX_TOP, vocabSize),
    topIds: L * Math.min(MAX_TOP, vocabSize),
    topStats: L * TOP_STATS,
    topScratch: isCausal ? L * topScratch(vocabSize) : 0,
    /** Rows of each adapter in the step, and those among them with logits. */
    adapterRows: isCausal ? MAX_STACKED_ADAPTERS * (T + L) : 0,
    /** A·x of an adapter's rows, [T][rank]. */
    adapterScratch: isCausal ? Math.max(T, L) * MAX_RANK : 0,
  };
}

export type ActivationName = keyof ReturnType<typeof activationSizes>;

export interface ActivationBuffers extends Readonly<Record<ActivationName, Offset>> {
  /** f32[T][rotaryDim] for each rope variant. */
  readonly cosSin: readonly Offset[];
}

export interface ActivationPlan {
  readonly sizes: Readonly<Record<ActivationName, number>>;
  readonly cosSinSizes: readonly number[];
  readonly sizeBytes: number;
}

export function planActivations(
  shape: DecoderShape,
  limits: ModelLimits,
  maxContextTokens: number,
  ropes: readonly RopeVariant[],
): ActivationPlan {
  const sizes = activationSizes(shape, limits, maxContextTokens);
  const cosSinSizes = ropes.map(({ rotaryDim }) => limits.maxBatchTokens * rotaryDim);
  const sizeBytes = [...Object.values(sizes), ...cosSinSizes].reduce((sum, size) => sum + alignArena(size * 4), 0);
  return { sizes, cosSinSizes, sizeBytes };
}

export function allocateActivations(arena: Arena, { sizes, cosSinSizes }: ActivationPlan): ActivationBuffers {
  const offsets = Object.entries(sizes).map(([name, size]) => [name, arena.allocate(size * 4, name)]);
  return {
    ...(Object.fromEntries(offsets) as Record<ActivationName, Offset>),
    cosSin: cosSinSizes.map((size) => arena.allocate(size * 4, 'cosSin')),
  };
}
