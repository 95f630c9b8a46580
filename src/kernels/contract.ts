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
import type { DistancesOp } from './distances-op.ts';
import type { PickLinksOp, SearchGraphOp } from './graph-ops.ts';
import type { TopLogitsOp } from './top-logits-op.ts';

export * from './distances-op.ts';
export * from './graph-ops.ts';
export * from './top-logits-op.ts';

/**
 * The one contract all kernel packs fulfil. Data lives in the pack's arena; operations name it by byte offset. They are
 * recorded in order and have happened, at the latest, when `await sync()` returns: nothing may be read from the arena
 * between recording and `sync()`. CPU packs may run at once; a GPU needs the batch.
 *
 * Every activation is f32, row-major, one row a token, and contiguous. Results of a row never depend on which other rows
 * share the call: batched = alone, bit for bit. Models and engine build on that.
 */
export interface KernelPack {
  readonly name: string;
  /** Threads that share one operation, the calling one included. */
  readonly numThreads: number;
  readonly arena: Arena;
  /** Where weights, as they lie in the arena, can be kept on disk. */
  readonly images?: WeightImages;

  /** Reads a weight matrix and keeps it in the layout this pack computes on. Runs at once, not recorded. */
  loadMatrix(source: MatrixSource): WeightMatrix;

  /** out[i] = table[ids[i]] * scale, dequantized. */
  gatherRows(op: GatherRowsOp): void;
  /** out[t] = weight · x[t] (+ bias) (+ out[t] when accumulate), for each output; one pass over x for all of them. */
  matmul(op: MatmulOp): void;
  /** out[t] = activation(gate · x[t]) * (up · x[t]): the same bits as `matmul` and `gatedActivation`, in one pass. */
  gatedMatmul(op: GatedMatmulOp): void;
  /** out[r] = x[r] / rms(x[r]) * weight; also used per head with rows = tokens × heads. `out` may be `x`. */
  rmsNorm(op: RmsNormOp): void;
  /** out[r] = (x[r] - mean) / sqrt(variance + epsilon) * weight + bias. `out` may be `x`. */
  layerNorm(op: LayerNormOp): void;
  /** Rotates the first `rotaryDim` values of every head in place by the angles in `cosSin`. */
  rope(op: RopeOp): void;
  /** Stores k and v of each token, rounded to the region's precision, in its page slot. */
  writeKv(op: WriteKvOp): void;
  /** Norms of heads where there are some, `rope` of q and k in place, then `writeKv`: the same bits, in one pass. */
  rotateAndStore(op: RotateAndStoreOp): void;
  /** Rounds whole pages, all of their tokens written, into another region: the same bytes on every pack. */
  packPages(op: PackPagesOp): void;
  /** Softmax(q·kᵀ·scale)·v over the pages of each sequence, causal or not; online softmax, page by page in order. */
  attention(op: AttentionOp): void;
  /** out = activation(gate) * up. `out` may be `gate`. */
  gatedActivation(op: GatedActivationOp): void;
  /** x = x/2 * (1 + erf(x/√2)), in place: GELU as encoders use it, with no rounding between. */
  gelu(op: GeluOp): void;
  /** out = x + y. `out` may be either. */
  add(op: AddOp): void;
  /** out[i] = x[rows[i]]: picks the rows whose logits are wanted. */
  copyRows(op: CopyRowsOp): void;
  /** x = cap * tanh(x / cap), in place. */
  softcap(op: SoftcapOp): void;
  /** x *= factor, in place. */
  scale(op: ScaleOp): void;
  /** out[t] += scale * B · (A · x[t]) in f32, for the tokens of one adapter. */
  lowRankDelta(op: LowRankDeltaOp): void;
  /** Dot products or squared distances of one vector and many. */
  distances(op: DistancesOp): void;
  /** Walks a graph of vectors towards each query; what is found for one does not depend on the others. */
  searchGraph(op: SearchGraphOp): void;
  /** Chooses neighbours for nodes of a graph: near ones, in different directions. */
  pickLinks(op: PickLinksOp): void;
  /** The k largest of each row, and the row's maximum and sum of exponentials: the same ids and values on every pack. */
  topLogits(op: TopLogitsOp): void;

  sync(): Promise<void>;
  /** `sync` that has happened when it returns; only of packs that compute while the caller waits. */
  finish?(): void;
  /** Much will be written there soon: a pack may get the memory from the system meanwhile, on another thread. */
  prepare?(offset: Offset, sizeBytes: number): void;
  /** Stops threads and drops the arena. The pack is unusable afterwards. */
  dispose(): Promise<void>;
}

/** The memory a pack computes in: grows never, frees never; the KV pool manages its own region inside. */
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

/** Where `loadMatrix` gets its bytes: rows of GGUF blocks, row r at r * rowBytes. */
export interface MatrixSource {
  readonly name: string;
  readonly type: TensorTypeName;
  readonly numRows: number;
  readonly numCols: number;
  /** Fills `target` with the matrix's bytes from `byteOffset` on. */
  readInto(target: Uint8Array, byteOffset: number): void;
}

/** Part of the arena as a file, and back. */
export interface WeightImages {
  /** Names the bytes: a pack with another name makes others of the same weights. */
  readonly layout: string;
  /** Images start at multiples of this in the arena and must in the file. */
  readonly alignment: number;
  /** Reserves the place of a matrix whose packed bytes come from an image. */
  placeMatrix(shape: Omit<MatrixSource, 'readInto'>): WeightMatrix;
  /** A checksum of each MiB. */
  checksums(offset: Offset, sizeBytes: number): BigUint64Array;
  /** Brings bytes of an open file (a descriptor) into the arena, and returns checksums of what is there then. */
  restore(file: number, fileOffset: number, offset: Offset, sizeBytes: number): BigUint64Array;
  /** Zeros again, after a `restore` of the wrong bytes. */
  clear(offset: Offset, sizeBytes: number): void;
}

/** A matrix in the pack's own layout; only the pack that made it can use it. */
export interface WeightMatrix {
  readonly name: string;
  readonly type: TensorTypeName;
  readonly numRows: number;
  readonly numCols: number;
  readonly offset: Offset;
  readonly sizeBytes: number;
}

/** Rows of a table, by their ids. */
export interface GatherRowsOp {
  table: WeightMatrix;
  /** int32[numRows] */
  ids: Offset;
  /** f32[numRows × table.numCols] */
  out: Offset;
  numRows: number;
  scale: number;
}

/** A product of the same rows with one weight or several. */
export interface MatmulOp {
  /** f32[numTokens × numCols] */
  x: Offset;
  numTokens: number;
  /** Where given, x[t] is normalized first, as `rmsNorm` does. */
  norm?: InputNorm | null;
  /** All weights have the same numCols. */
  outputs: readonly MatmulOutput[];
}

/** A norm on the way into a product. */
export interface InputNorm {
  /** f32[numCols] */
  weight: Offset;
  epsilon: number;
  /** f32[numTokens × numCols] that the pack may overwrite. */
  scratch: Offset;
}

/** The two products of a gated feed-forward, and its activation. */
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

/** One weight of a product, and where its result goes. */
export interface MatmulOutput {
  weight: WeightMatrix;
  /** f32[numTokens × weight.numRows] */
  out: Offset;
  /** f32[weight.numRows], or null */
  bias: Offset | null;
  /** Adds to what `out` holds: the residual connection without a pass of its own. */
  accumulate: boolean;
}

/** A norm of rows by their root mean square. */
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

/** A norm of rows by mean and variance. */
export interface LayerNormOp extends RmsNormOp {
  /** f32[dim] */
  bias: Offset;
}

/** A rotation of heads by their positions. */
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

/** What `rope` and `writeKv` need, for the heads of one attention. */
export interface RotateAndStoreOp extends Omit<RopeOp, 'x'>, WriteKvOp {
  /** f32[numTokens × numHeads × headDim] */
  q: Offset;
  /** f32[headDim], or null */
  qNorm: Offset | null;
  kNorm: Offset | null;
  epsilon: number;
}

/** Keys and values of new tokens, and the slots of their pages. */
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
 * All arithmetic in f32. With p the largest magnitude of a q8 row (the tokens of a channel, the channels of a token):
 * scale = p / 127 rounded up to f16, q = x / scale to nearest, ties to even. q4: min = the least value rounded down to f16,
 * scale = (the largest - min) / 15 rounded up, q = (x - min) / scale. So nothing is off by more than half a
 * scale. A row with a NaN, or with anything f16 cannot hold, gets the scale NaN and zeros: it shows wherever it is read.
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

/** Queries of several sequences, and the pages each may see. */
export interface AttentionOp {
  kv: KvRegion;
  /** Where packed pages are: an entry e < 0 of a page table is page ~e of this region. */
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
   * int32: page ids of all sequences; a sequence's ids start at its index. The last row attends to all its context.
   * Entries that a window has left behind must still name pages: they may be read.
   */
  pageTables: Offset;
  scale: number;
  /** 0: full. n: a token sees itself and the n - 1 tokens before it. */
  window: number;
  /** 0: off. Scores become cap * tanh(score / cap) before the mask. */
  softcap: number;
  /** Every row sees the whole context, also what comes after it; the window must be 0 then. Default false. */
  seesAll?: boolean;
}

/** An activation of one vector, times another. */
export interface GatedActivationOp {
  gate: Offset;
  up: Offset;
  out: Offset;
  count: number;
  /**
   * 'gelu' is the tanh approximation that Gemma uses. Between -10 and 10 its argument and its result are rounded to
   * f16, as llama.cpp's table does: files are made and judged with that, and logits differ in the fourth digit without.
   */
  activation: 'silu' | 'gelu';
}

/** An activation in place. */
export interface GeluOp {
  x: Offset;
  count: number;
}

/** A sum of two vectors. */
export interface AddOp {
  x: Offset;
  y: Offset;
  out: Offset;
  count: number;
}

/** Rows that are picked out of others. */
export interface CopyRowsOp {
  x: Offset;
  /** int32[numRows] */
  rows: Offset;
  out: Offset;
  numRows: number;
  dim: number;
}

/** A soft limit of values, in place. */
export interface SoftcapOp {
  x: Offset;
  count: number;
  cap: number;
}

/** A factor for all values, in place. */
export interface ScaleOp {
  x: Offset;
  count: number;
  factor: number;
}

/** Several adapters in one step are several operations, each with the rows of its tokens. */
export interface LowRankDeltaOp {
  /** f32[… × numCols] */
  x: Offset;
  /** Rows to work on: the length of `rows` where there is one. */
  numTokens: number;
  numCols: number;
  /** f32[rank × numCols] */
  a: Offset;
  /** f32[numRows × rank] */
  b: Offset;
  /** 1 to `MAX_RANK` */
  rank: number;
  scale: number;
  /** int32[numTokens]: rows of x and out, none twice; null: 0 to numTokens - 1. */
  rows: Offset | null;
  /** f32[… × numRows] */
  out: Offset;
  numRows: number;
  /** f32[numTokens × rank] that the pack may overwrite. */
  scratch: Offset;
}

/** Highest rank of `lowRankDelta`: what packs keep scratch for. */
export const MAX_RANK = 64;

/** What a pack is told before it exists, so that it can reserve its own scratch next to the caller's memory. */
export interface KernelPackOptions {
  /** Bytes the caller will allocate: matrices (see `matrixBytes`), vectors, activations, KV pages. */
  arenaBytes: number;
  numThreads: number;
  /** Most rows in one `matmul`. */
  maxTokens: number;
  /** Widest matrix: its number of columns. */
  maxCols: number;
}

/** Makes packs of one kind, and says beforehand what they need. */
export interface KernelPackFactory {
  readonly name: string;
  /** Largest arena this kind of pack can address. */
  readonly maxArenaBytes: number;
  /** Bytes `loadMatrix` will take for such a matrix, before alignment. */
  matrixBytes(type: TensorTypeName, numRows: number, numCols: number): number;
  create(options: KernelPackOptions): Promise<KernelPack>;
}

/** Which kernels to use; `auto`: the fastest that runs here. */
export type KernelChoice = 'auto' | 'native' | 'wasm' | 'reference';
