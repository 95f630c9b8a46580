import type { TensorTypeName } from '../core/tensor-type.ts';

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
  /** Rotates the first `rotaryDim` values of every head in place by the angles in `cosSin`. */
  rope(op: RopeOp): void;
  /** Stores k and v of each token, rounded to the region's precision, in its page slot. */
  writeKv(op: WriteKvOp): void;
  /** Norms of heads where there are some, `rope` of q and k in place, then `writeKv`: the same bits, in one pass. */
  rotateAndStore(op: RotateAndStoreOp): void;
  /** Causal softmax(q·kᵀ·scale)·v over the pages of each sequence; online softmax, page by page in order. */
  attention(op: AttentionOp): void;
  /** out = activation(gate) * up. `out` may be `gate`. */
  gatedActivation(op: GatedActivationOp): void;
  /** out = x + y. `out` may be either. */
  add(op: AddOp): void;
  /** out[i] = x[rows[i]]: picks the rows whose logits are wanted. */
  copyRows(op: CopyRowsOp): void;
  /** x = cap * tanh(x / cap), in place. */
  softcap(op: SoftcapOp): void;
  /** x *= factor, in place. */
  scale(op: ScaleOp): void;

  sync(): Promise<void>;
  /** Stops threads and drops the arena. The pack is unusable afterwards. */
  dispose(): Promise<void>;
}

/** A byte offset into the arena. Always a multiple of `ARENA_ALIGNMENT` when it comes from `allocate`. */
export type Offset = number;

/** One cache line: a thread never shares a line it writes with another, and every SIMD load is aligned. */
export const ARENA_ALIGNMENT = 64;

/** Tokens in one KV page. */
export const PAGE_TOKENS = 16;

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

export interface GatherRowsOp {
  table: WeightMatrix;
  /** int32[numRows] */
  ids: Offset;
  /** f32[numRows × table.numCols] */
  out: Offset;
  numRows: number;
  scale: number;
}

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

export interface MatmulOutput {
  weight: WeightMatrix;
  /** f32[numTokens × weight.numRows] */
  out: Offset;
  /** f32[weight.numRows], or null */
  bias: Offset | null;
  /** Adds to what `out` holds: the residual connection without a pass of its own. */
  accumulate: boolean;
}

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

/**
 * The KV pages of one model. Page p of layer l starts at base + p * pageBytes + l * layerBytes and holds
 *   K: [numKvHeads][headDim][PAGE_TOKENS]   (transposed: scores of 16 tokens come from contiguous loads)
 *   V: [numKvHeads][PAGE_TOKENS][headDim]
 * as f16 or f32, whichever `precision` says.
 */
export interface KvRegion {
  readonly base: Offset;
  readonly pageBytes: number;
  readonly layerBytes: number;
  readonly numPages: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly precision: KvPrecision;
}

/** f16 halves the memory; f32 is for comparing with others whose attention rounds elsewhere. */
export type KvPrecision = 'f16' | 'f32';

export const KV_VALUE_BYTES: Readonly<Record<KvPrecision, number>> = { f16: 2, f32: 4 };

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

export interface AttentionOp {
  kv: KvRegion;
  layer: number;
  /** f32[numTokens × numHeads × headDim] */
  q: Offset;
  /** f32[numTokens × numHeads × headDim] */
  out: Offset;
  numHeads: number;
  /** int32[numSequences × 4]: first row in q, number of rows, context tokens after this step, index into pageTables */
  sequences: Offset;
  numSequences: number;
  /** int32: page ids of all sequences; a sequence's ids start at its index. The last row attends to all its context. */
  pageTables: Offset;
  scale: number;
  /** 0: full. n: a token sees itself and the n - 1 tokens before it. */
  window: number;
  /** 0: off. Scores become cap * tanh(score / cap) before the mask. */
  softcap: number;
}

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

export interface AddOp {
  x: Offset;
  y: Offset;
  out: Offset;
  count: number;
}

export interface CopyRowsOp {
  x: Offset;
  /** int32[numRows] */
  rows: Offset;
  out: Offset;
  numRows: number;
  dim: number;
}

export interface SoftcapOp {
  x: Offset;
  count: number;
  cap: number;
}

export interface ScaleOp {
  x: Offset;
  count: number;
  factor: number;
}

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

/** Size rounded up to the arena's alignment: what one `allocate` really takes. */
export function alignArena(sizeBytes: number): number {
  return Math.ceil(sizeBytes / ARENA_ALIGNMENT) * ARENA_ALIGNMENT;
}

/** Bytes of one layer in one page: K and V. */
export function kvLayerBytes(numKvHeads: number, headDim: number, precision: KvPrecision): number {
  return alignArena(2 * PAGE_TOKENS * numKvHeads * headDim * KV_VALUE_BYTES[precision]);
}
