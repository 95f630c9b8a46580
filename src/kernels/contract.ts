import type { TensorTypeName } from '../core/tensor-type.ts';
import type { Offset } from './arena-alignment.ts';
import type { KvRegion } from './kv-region.ts';

export { ARENA_ALIGNMENT, alignArena, type Offset } from './arena-alignment.ts';
export {
  type FloatKvPrecision,
  kvHeadBytes,
  kvLayerBytes,
  type KvPrecision,
  type KvRegion,
  PAGE_TOKENS,
  type PackedKvPrecision,
} from './kv-region.ts';
import type { CopyBlocksOp } from './copy-blocks-op.ts';
import type { DistancesOp } from './distances-op.ts';
import type { ExpertsOp } from './experts-op.ts';
import type { GatedActivationOp } from './gated-activation-op.ts';
import type { LowRankDeltaOp } from './low-rank-op.ts';
import type { PickLinksOp, SearchGraphOp } from './graph-ops.ts';
import type { CausalConvOp, DeltaScanOp, SelectiveScanOp } from './state-ops.ts';
import type { MatchLengthsOp, MixStreamsOp, SparsifyOp } from './stream-ops.ts';
import type { TopLogitsOp } from './top-logits-op.ts';
import type { WeightMatrix } from './weight-matrix.ts';

export * from './copy-blocks-op.ts';
export * from './distances-op.ts';
export * from './experts-op.ts';
export * from './gated-activation-op.ts';
export * from './graph-ops.ts';
export * from './low-rank-op.ts';
export * from './state-ops.ts';
export * from './stream-ops.ts';
export * from './top-logits-op.ts';
export * from './weight-matrix.ts';

/**
 * The contract of all kernel packs. Data is in the pack's arena, addressed by byte offset. Operations are recorded in order
 * and complete, at the latest, when `await sync()` returns: read nothing from the arena between recording and `sync()`.
 * CPU packs may run them immediately; a GPU needs the batch.
 *
 * Every activation is f32, row-major, contiguous, one row per token. Results of a row never depend on other rows in the
 * call: batched and alone are equal, bit for bit. Models and engine rely on that.
 */
export interface KernelPack {
  readonly name: string;
  /** Threads that share one operation, including the calling one. */
  readonly numThreads: number;
  readonly arena: Arena;
  /** Stores weights on disk in their arena layout. */
  readonly images?: WeightImages;
  /** Operations that throw `unsupported`; default none. A model that needs one is refused when it is loaded. */
  readonly missing?: readonly string[];

  /** Reads a weight matrix into the pack's layout. Runs immediately, not recorded. */
  loadMatrix(source: MatrixSource): WeightMatrix;

  /** out[i] = table[ids[i]] * scale, dequantized. */
  gatherRows(op: GatherRowsOp): void;
  /** out[t] = weight · x[t] (+ bias) (+ out[t] if accumulate), for each output; one pass over x for all of them. */
  matmul(op: MatmulOp): void;
  /** out[t] = activation(gate · x[t]) * (up · x[t]): the same bits as `matmul` and `gatedActivation`, in one pass. */
  gatedMatmul(op: GatedMatmulOp): void;
  /** The routed feed-forward layer of a mixture: reads the weights of the chosen experts only, each once for all its rows. */
  experts(op: ExpertsOp): void;
  /** out[r] = x[r] / rms(x[r]) * weight; also used per head with rows = tokens × heads. `out` may be `x`. */
  rmsNorm(op: RmsNormOp): void;
  /** out[r] = (x[r] - mean) / sqrt(variance + epsilon) * weight + bias. `out` may be `x`. */
  layerNorm(op: LayerNormOp): void;
  /** Rotates the first `rotaryDim` values of every head in place by the angles in `cosSin`. */
  rope(op: RopeOp): void;
  /** Stores k and v of each token, rounded to the region's precision, in the token's page slot. */
  writeKv(op: WriteKvOp): void;
  /** Optional norms of heads, `rope` of q and k in place, then `writeKv`: the same bits, in one pass. */
  rotateAndStore(op: RotateAndStoreOp): void;
  /** Rounds full pages into another region: the same bytes on every pack. */
  packPages(op: PackPagesOp): void;
  /** Softmax(q·kᵀ·scale)·v over the pages of each sequence, causal or not; online softmax, page by page in order. */
  attention(op: AttentionOp): void;
  /** out = activation(gate) * up. `out` may be `gate`. */
  gatedActivation(op: GatedActivationOp): void;
  /** The GELU of feed-forward layers without a gate, in place. */
  gelu(op: GeluOp): void;
  /** out = x + y. `out` may be either. */
  add(op: AddOp): void;
  /** out = x * y. `out` may be either. */
  multiply(op: AddOp): void;
  /** out = y / (1 + exp(-x)): a gate of values between 0 and 1. `out` may be either. */
  sigmoidGate(op: AddOp): void;
  /** out[i] = x[rows[i]]: selects the rows that need logits. */
  copyRows(op: CopyRowsOp): void;
  /** out[o][i] = x[o][i], block by block: moves parts of rows, and heads before tokens. */
  copyBlocks(op: CopyBlocksOp): void;
  /** x = cap * tanh(x / cap), in place. */
  softcap(op: SoftcapOp): void;
  /** x *= factor, in place. */
  scale(op: ScaleOp): void;
  /** out[t] += scale * B · (A · x[t]) in f32, for the tokens of one adapter. */
  lowRankDelta(op: LowRankDeltaOp): void;
  /** out[t] = activation(bias + the sum over j of weight[j] * x[t - width + 1 + j]), channel by channel; see `StateRows`. */
  causalConv(op: CausalConvOp): void;
  /**
   * For each head, with Δ = softplus(dt + dtBias): state = state * exp(Δ * a) + Δ * x ⊗ b, then out = state · c + d * x. See
   * `StateRows`.
   */
  selectiveScan(op: SelectiveScanOp): void;
  /**
   * For each head, with k and q of length 1 and β = sigmoid(beta): state = state * exp(softplus(dt + dtBias) * a), then
   * state += k ⊗ β * (v - state · k), then out = state · q / √keyDim. See `StateRows`.
   */
  deltaScan(op: DeltaScanOp): void;
  /** out[i][t] = base[i][t] + the sum over j of (coefficients[t][i][j] + shift) * x[j][t]. */
  mixStreams(op: MixStreamsOp): void;
  /** x[r] *= |target[r]| / |x[r]|, in place; a row of zeros stays zeros. */
  matchLengths(op: MatchLengthsOp): void;
  /** x[r] = max(0, x[r] - mean - threshold * deviation) of the row, in place; the deviation is that of a sample. */
  sparsify(op: SparsifyOp): void;
  /** Dot products or squared distances between one vector and many. */
  distances(op: DistancesOp): void;
  /** Searches a graph of vectors for each query; the results of one query do not depend on the others. */
  searchGraph(op: SearchGraphOp): void;
  /** Selects neighbours for graph nodes: near ones, in different directions. */
  pickLinks(op: PickLinksOp): void;
  /** The k largest of each row, and the row's maximum and sum of exponentials: the same ids and values on every pack. */
  topLogits(op: TopLogitsOp): void;

  /**
   * Records the operations of `record`, or those that it recorded at the last call with this key: for steps whose
   * operations differ in the contents of the arena alone. Contexts of attention may differ as long as the longest has
   * as many whole units of `REPLAY_CONTEXT`; its rows stay. Only packs have it whose recording takes longer than their work.
   */
  replay?(key: string, record: () => void): void;
  /**
   * Completes the recorded operations. `reads` are the only results that the caller will read; without it, all. A pack
   * whose memory is on a device copies no others back.
   */
  sync(reads?: readonly ArenaRange[]): Promise<void>;
  /**
   * Copies bytes within the arena, after all recorded operations. Only packs on a device have it: there, views of the
   * arena show results only after a `sync` that reads them.
   */
  copyBytes?(from: Offset, to: Offset, sizeBytes: number): void;
  /** Allocates memory on one side only; operations on it run there. Only packs with two sides have it. */
  allocateOn?(side: 'gpu' | 'cpu', sizeBytes: number, what: string): Offset;
  /** A synchronous `sync`; only for packs that compute while the caller waits. */
  finish?(): void;
  /** Announces large writes: a pack may already map the memory on another thread. */
  prepare?(offset: Offset, sizeBytes: number): void;
  /** Stops threads and frees the arena. The pack is unusable afterwards. */
  dispose(): Promise<void>;
}

/** Tokens: see `replay`. */
export const REPLAY_CONTEXT = 256;

/** A pack's memory: never grows, never frees; the KV pool manages its own region inside. */
export interface Arena {
  readonly sizeBytes: number;
  readonly usedBytes: number;
  /** Zeroed memory, aligned to `ARENA_ALIGNMENT`; throws `out_of_memory` with the sizes. */
  allocate(sizeBytes: number, what: string): Offset;
  f32(offset: Offset, length: number): Float32Array;
  i32(offset: Offset, length: number): Int32Array;
  u16(offset: Offset, length: number): Uint16Array;
  u8(offset: Offset, length: number): Uint8Array;
}

/** Bytes of an arena. */
export interface ArenaRange {
  readonly offset: Offset;
  readonly sizeBytes: number;
}

/** Source of a matrix: rows of GGUF blocks, row r at r * rowBytes. */
export interface MatrixSource {
  readonly name: string;
  readonly type: TensorTypeName;
  readonly numRows: number;
  readonly numCols: number;
  /** Fills `target` with the matrix's bytes from `byteOffset` on. */
  readInto(target: Uint8Array, byteOffset: number): void;
}

/** Saves and restores part of the arena as a file. */
export interface WeightImages {
  /** Identifies the byte layout: packs with different names store the same weights differently. */
  readonly layout: string;
  /** Images start at multiples of this in the arena and in the file. */
  readonly alignment: number;
  /** Reserves memory for a matrix whose packed bytes come from an image. */
  placeMatrix(shape: Omit<MatrixSource, 'readInto'>): WeightMatrix;
  /** One checksum per MiB. */
  checksums(offset: Offset, sizeBytes: number): BigUint64Array;
  /** Reads or maps bytes of an open file (a descriptor) into the arena; returns checksums of the result. */
  restore(file: number, fileOffset: number, offset: Offset, sizeBytes: number): BigUint64Array;
  /** Zeroes the bytes after a `restore` of invalid ones. */
  clear(offset: Offset, sizeBytes: number): void;
}

/** Arguments of `gatherRows`. */
export interface GatherRowsOp {
  table: WeightMatrix;
  /** int32[numRows] */
  ids: Offset;
  /** f32[numRows × table.numCols] */
  out: Offset;
  numRows: number;
  scale: number;
}

/** Arguments of `matmul`: the product of the same rows with one or more weights. */
export interface MatmulOp {
  /** f32[numTokens × numCols] */
  x: Offset;
  numTokens: number;
  /** If set, x[t] is normalized first, as by `rmsNorm`. */
  norm?: InputNorm | null;
  /** All weights have the same numCols. */
  outputs: readonly MatmulOutput[];
}

/** A norm of a product's input. */
export interface InputNorm {
  /** f32[numCols] */
  weight: Offset;
  epsilon: number;
  /** f32[numTokens × numCols] that the pack may overwrite. */
  scratch: Offset;
}

/** The two products of a gated feed-forward layer and its activation. */
export interface GatedMatmulOp {
  /** f32[numTokens × numCols] */
  x: Offset;
  numTokens: number;
  norm?: InputNorm | null;
  gate: { weight: WeightMatrix; bias: Offset | null };
  up: { weight: WeightMatrix; bias: Offset | null };
  /** f32[numTokens × gate.numRows] */
  out: Offset;
  /** As large as `out`; the pack may overwrite it. */
  scratch: Offset;
  activation: GatedActivationOp['activation'];
}

/** One weight of a product and the place of its result. */
export interface MatmulOutput {
  weight: WeightMatrix;
  /** f32[numTokens × weight.numRows] */
  out: Offset;
  /** f32[weight.numRows], or null */
  bias: Offset | null;
  /** Adds to `out`: a residual connection without a separate pass. */
  accumulate: boolean;
}

/** Arguments of `rmsNorm`. */
export interface RmsNormOp {
  /** f32[numRows × dim] */
  x: Offset;
  /** f32[dim] */
  weight: Offset;
  out: Offset;
  numRows: number;
  dim: number;
  epsilon: number;
}

/** Arguments of `layerNorm`. */
export interface LayerNormOp extends RmsNormOp {
  /** f32[dim] */
  bias: Offset;
}

/** Rotary position embedding of heads. */
export interface RopeOp {
  /** f32[numTokens × numHeads × headDim] */
  x: Offset;
  /** f32[numTokens × rotaryDim]: cos, sin of pair 0, cos, sin of pair 1, … already scaled by the attention factor */
  cosSin: Offset;
  numTokens: number;
  numHeads: number;
  headDim: number;
  rotaryDim: number;
  /** 'adjacent': pairs (0,1),(2,3)…  'halves': pairs (i, i + rotaryDim/2). */
  pairing: 'adjacent' | 'halves';
}

/** Arguments of `rope` and `writeKv` for the heads of one attention layer. */
export interface RotateAndStoreOp extends Omit<RopeOp, 'x'>, WriteKvOp {
  /** f32[numTokens × numHeads × headDim] */
  q: Offset;
  /** f32[headDim], or null */
  qNorm: Offset | null;
  kNorm: Offset | null;
  epsilon: number;
}

/** Keys and values of new tokens and their page slots. */
export interface WriteKvOp {
  kv: KvRegion;
  layer: number;
  /** f32[numTokens × numKvHeads × headDim], already rotated */
  k: Offset;
  v: Offset;
  /** int32[numTokens]: pageId * PAGE_TOKENS + slot */
  slots: Offset;
  numTokens: number;
}

/**
 * All arithmetic is in f32. q8, with p the largest magnitude of a row (the tokens of a channel, the channels of a token):
 * scale = p / 127 rounded up to f16, q = x / scale to nearest, ties to even. q4: min = the smallest value rounded down to
 * f16, scale = (largest - min) / 15 rounded up, q = (x - min) / scale. Every error is at most half a scale. A row with a
 * NaN, or with a value beyond f16, gets scale NaN and zeros, so that it is visible to every reader.
 */
export interface PackPagesOp {
  /** f16 or f32 */
  from: KvRegion;
  /** q8 or q4 */
  to: KvRegion;
  firstLayer: number;
  numLayers: number;
  /** int32[numPages × 2]: page of `from`, page of `to` */
  pages: Offset;
  numPages: number;
}

/** Queries of several sequences and the pages they attend to. */
export interface AttentionOp {
  kv: KvRegion;
  /** The region of packed pages: an entry e < 0 of a page table is page ~e of it. */
  packed?: KvRegion | null;
  layer: number;
  /** f32[numTokens × numHeads × headDim] */
  q: Offset;
  /** f32[numTokens × numHeads × headDim] */
  out: Offset;
  numHeads: number;
  /** int32[numSequences × 4]: first row in q, number of rows, context tokens after this step, index into pageTables */
  sequences: Offset;
  numSequences: number;
  /**
   * int32: page ids of all sequences; a sequence's ids start at its index. The last row attends to the whole context.
   * Entries before the window must still be valid page ids: they may be read.
   */
  pageTables: Offset;
  scale: number;
  /** 0: full. n: a token sees itself and the n - 1 tokens before it. */
  window: number;
  /** 0: off. Scores become cap * tanh(score / cap) before the mask. */
  softcap: number;
  /** Every row sees the whole context, including later tokens; requires window 0. Default false. */
  seesAll?: boolean;
  /** f32[numHeads]: a score of each head's softmax without a value, so that the weights of values can sum to less than 1. */
  sinks?: Offset | null;
}

/** Arguments of `gelu`. */
export interface GeluOp {
  x: Offset;
  count: number;
  /** 'erf': x/2 * (1 + erf(x/√2)), without intermediate rounding. 'tanh': as 'gelu' of `gatedActivation`, with its rounding. */
  formula: 'erf' | 'tanh';
}

/** Arguments of `add`, `multiply` and `sigmoidGate`. */
export interface AddOp {
  x: Offset;
  y: Offset;
  out: Offset;
  count: number;
}

/** Arguments of `copyRows`. */
export interface CopyRowsOp {
  x: Offset;
  /** int32[numRows] */
  rows: Offset;
  out: Offset;
  numRows: number;
  dim: number;
}

/** Arguments of `softcap`. */
export interface SoftcapOp {
  x: Offset;
  count: number;
  cap: number;
}

/** Arguments of `scale`. */
export interface ScaleOp {
  x: Offset;
  count: number;
  factor: number;
}

/** Options at creation, so that a pack can reserve its scratch next to the caller's memory. */
export interface KernelPackOptions {
  /** Bytes that the caller will allocate: matrices (see `matrixBytes`), vectors, activations, KV pages. */
  arenaBytes: number;
  numThreads: number;
  /** Most rows of one `matmul`. */
  maxTokens: number;
  /** Widest matrix: its number of columns. */
  maxCols: number;
}

/** The limits of kernels on a device. */
export interface DeviceLimits {
  /** See `KernelPack.missing`. */
  readonly missing: readonly string[];
  /** Most bytes of everything but matrices. */
  readonly maxDataBytes: number;
  /** The device's memory; null: unknown. */
  readonly memoryBytes: number | null;
}

/** Creates packs of one kind and reports their requirements beforehand. */
export interface KernelPackFactory {
  readonly name: string;
  /** Largest arena that this kind of pack can address. */
  readonly maxArenaBytes: number;
  /** Arenas up to this size are faster than larger ones; default: there is no difference. */
  readonly fastArenaBytes?: number;
  /** Why `maxArenaBytes` is no larger here, as a part of a sentence. */
  readonly limitReason?: string;
  /** Only kernels on a device have it. */
  readonly device?: DeviceLimits;
  /** Bytes that `loadMatrix` needs for such a matrix, before alignment. The name matters only to packs with two sides. */
  matrixBytes(type: TensorTypeName, numRows: number, numCols: number, name?: string): number;
  create(options: KernelPackOptions): Promise<KernelPack>;
}

export type { KernelChoice } from './kernel-choice.ts';
