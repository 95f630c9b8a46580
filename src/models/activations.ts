import {
  type Arena,
  alignArena,
  expertScratchBytes,
  MAX_RANK,
  MAX_TOP,
  type Offset,
  PAGE_TOKENS,
  TOP_STATS,
  topScratch,
} from '../kernels/contract.ts';
import { MAX_PACK_MOVES } from './kv-page-store.ts';
import { largestOf } from './layer-sizes.ts';
import type { RopeVariant } from './rope.ts';
import { MAX_STACKED_ADAPTERS } from './types.ts';
import type { DecoderShape, ModelLimits } from './types.ts';

/** Number of 4-byte elements of each buffer of a step; T rows, S sequences, L rows with logits. */
export function activationSizes(shape: DecoderShape, limits: ModelLimits, maxContextTokens: number) {
  const { maxBatchTokens: T, maxSequences: S, maxLogitRows: L } = limits;
  const { embeddingDim, numHeads, headDim, isCausal } = shape;
  const feedForwardDim = denseFeedForwardDim(shape);
  const vocabSize = isCausal ? shape.vocabSize : 0;
  const hasPackedPages = (limits.packedPrecision ?? null) !== null;
  return {
    ids: T,
    slots: T,
    sequences: S * 4,
    /** State, rows until it is copied, and the copy, for models with recurrent layers. */
    stateTable: S * 3,
    pageTables: S * Math.ceil(maxContextTokens / PAGE_TOKENS),
    /** Pages to pack, with their destinations. */
    packMoves: hasPackedPages ? MAX_PACK_MOVES * 2 : 0,
    logitRows: L,
    hiddenRows: T,
    /** Rows whose inputs are vectors, by their own number. */
    vectorRows: isCausal ? T : 0,
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
    k: T * widestKeys(shape),
    v: T * widestKeys(shape),
    /** Output of attention, [T][numHeads][headDim]. */
    attended: T * numHeads * headDim,
    /** [T][feedForwardDim]; only of dense layers and shared experts. */
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
    /** [T][numExperts] */
    expertLogits: T * (shape.experts?.numExperts ?? 0),
    expertScratch: expertScratchSize(shape, T),
  };
}

/** Values of a token's keys in the layer with the most. */
function widestKeys({ layerSizes, numKvHeads, headDim }: DecoderShape): number {
  if (layerSizes === undefined) return numKvHeads * headDim;
  return largestOf(layerSizes, (size) => size.numKvHeads * size.headDim);
}

function denseFeedForwardDim({ feedForwardDim, experts }: DecoderShape): number {
  if (experts === undefined) return feedForwardDim;
  return Math.max(experts.numDenseLayers > 0 ? feedForwardDim : 0, experts.sharedFeedForwardDim);
}

function expertScratchSize({ embeddingDim: dim, experts }: DecoderShape, numTokens: number): number {
  if (experts === undefined) return 0;
  const { numExperts, numUsed, feedForwardDim, sharedFeedForwardDim } = experts;
  const routed = expertScratchBytes({ numExperts, numUsed, dim, feedForwardDim }, numTokens);
  const shared = { numExperts: 1, numUsed: 1, dim, feedForwardDim: sharedFeedForwardDim };
  return Math.max(routed, expertScratchBytes(shared, numTokens)) / 4;
}

export type ActivationName = keyof ReturnType<typeof activationSizes>;

export interface ActivationBuffers extends Readonly<Record<ActivationName, Offset>> {
  /** f32[T][rotaryDim] for each rope variant. */
  readonly cosSin: readonly Offset[];
  /** f32[T][…] for each entry of the decoder's `scratch`. */
  readonly scratch: Readonly<Record<string, Offset>>;
}

export interface ActivationPlan {
  readonly sizes: Readonly<Record<ActivationName, number>>;
  readonly cosSinSizes: readonly number[];
  readonly scratchSizes: readonly (readonly [string, number])[];
  readonly sizeBytes: number;
}

/** The parts of a `Decoder` that need buffers. */
interface DecoderBuffers {
  readonly ropes: readonly RopeVariant[];
  readonly scratch?: Readonly<Record<string, number>>;
}

export function planActivations(
  shape: DecoderShape,
  limits: ModelLimits,
  maxContextTokens: number,
  { ropes, scratch = {} }: DecoderBuffers,
): ActivationPlan {
  const sizes = activationSizes(shape, limits, maxContextTokens);
  const cosSinSizes = ropes.map(({ rotaryDim }) => limits.maxBatchTokens * rotaryDim);
  const scratchSizes = Object.entries(scratch).map(([name, width]) => [name, limits.maxBatchTokens * width] as const);
  const all = [...Object.values(sizes), ...cosSinSizes, ...scratchSizes.map(([, size]) => size)];
  const sizeBytes = all.reduce((sum, size) => sum + alignArena(size * 4), 0);
  return { sizes, cosSinSizes, scratchSizes, sizeBytes };
}

export function allocateActivations(
  arena: Arena,
  { sizes, cosSinSizes, scratchSizes }: ActivationPlan,
): ActivationBuffers {
  const offsets = Object.entries(sizes).map(([name, size]) => [name, arena.allocate(size * 4, name)]);
  return {
    ...(Object.fromEntries(offsets) as Record<ActivationName, Offset>),
    cosSin: cosSinSizes.map((size) => arena.allocate(size * 4, 'cosSin')),
    scratch: Object.fromEntries(scratchSizes.map(([name, size]) => [name, arena.allocate(size * 4, name)])),
  };
}
