import type { TopLogits } from '../core/top-logits.ts';
import type { FloatKvPrecision, KernelPack, KvRegion, Offset, PackedKvPrecision } from '../kernels/contract.ts';
import type { GgufFile } from '../gguf/types.ts';

/** The shape of a decoder, as every architecture file fills it in from GGUF metadata. */
export interface DecoderShape {
  readonly architecture: string;
  /** False: an encoder. Tokens see what comes after them, sequences are computed whole, and there are no logits. */
  readonly isCausal: boolean;
  readonly numLayers: number;
  readonly embeddingDim: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly feedForwardDim: number;
  readonly vocabSize: number;
  /** The context the model was trained for. */
  readonly contextLength: number;
}

/** One step's work for the model: rows of tokens from one or several sequences, as plain data. */
export interface StepBatch {
  /** One entry a row. */
  readonly tokenIds: ArrayLike<number>;
  readonly positions: ArrayLike<number>;
  /** pageId * PAGE_TOKENS + slot, where the row's K and V go. */
  readonly slots: ArrayLike<number>;
  readonly sequences: readonly StepSequence[];
  /** Rows whose next-token logits are wanted, in this order. */
  readonly logitRows: ArrayLike<number>;
  /** Rows whose final hidden states are wanted, in this order; default none. */
  readonly hiddenRows?: ArrayLike<number>;
  /** How many of the best logits `topOf` shall know of each of these rows; default 0. */
  readonly numTop?: number;
  /** What is added to the products of some rows; default nothing. A row may be in several. */
  readonly adapters?: readonly StepAdapter[];
}

/** The rows of a batch that an adapter is for. */
export interface StepAdapter {
  /** As `setAdapter` named it. */
  readonly slot: number;
  /** On top of the scale in its weights. */
  readonly scale: number;
  readonly rows: ArrayLike<number>;
}

/** What an adapter adds to one matrix: W·x becomes W·x + the sum of scale · b·(a·x) over its parts. */
export interface AdapterWeights {
  /** `blk.N.attn_q` and so on, or `output`. */
  readonly site: string;
  readonly numCols: number;
  readonly numRows: number;
  /** Several where the rank is beyond `MAX_RANK`, or the memory does not hold it in one piece. */
  readonly parts: readonly AdapterPart[];
}

export interface AdapterPart {
  readonly rank: number;
  readonly scale: number;
  /** f32[rank × numCols] in the arena. */
  readonly a: Offset;
  /** f32[numRows × rank] */
  readonly b: Offset;
}

/** The rows [firstRow, firstRow + numRows) of a batch that belong to one sequence. */
export interface StepSequence {
  readonly firstRow: number;
  readonly numRows: number;
  /** Tokens the last of these rows sees, itself included. */
  readonly contextTokens: number;
  /** Enough pages for contextTokens, oldest first; an entry e < 0 is page ~e of the packed region. Rows are written to float pages only. */
  readonly pageIds: ArrayLike<number>;
}

/** A model in memory, ready to compute. */
export interface LoadedModel {
  readonly shape: DecoderShape;
  readonly pack: KernelPack;
  readonly kv: KvRegion;
  readonly pages: KvPageStore;
  readonly limits: ModelLimits;
  /** Bytes by use, as really allocated in the arena. */
  readonly memory: { readonly weightBytes: number; readonly kvBytes: number; readonly activationBytes: number };
  /**
   * Runs one step and returns f32[logitRows.length × vocabSize]; the view is valid until the next call.
   * Throws before computing anything when the batch breaks a limit.
   */
  forward(batch: StepBatch): Promise<Float32Array>;
  /** The best logits of the last step's i-th row with logits, as many as it asked for; views, valid until the next step. */
  topOf(index: number): TopLogits;
  /** f32[hiddenRows.length × embeddingDim] of the last step, after the final norm; a view, valid until the next step. */
  hiddenStates(): Float32Array;
  /** Weights that steps may name by this slot; null: no more. They stay in the caller's memory, unchanged while they are here. */
  setAdapter(slot: number, weights: readonly AdapterWeights[] | null): void;
  dispose(): Promise<void>;
}

/** The memory that KV pages share, and what can be done with them between steps. */
export interface KvPageStore {
  /** Tokens in a page. */
  readonly pageTokens: number;
  /** What else than weights and tokens decides the bits of a page: the kernels, and the rotation chosen for this context. */
  readonly computedBy: string;
  /** Bytes of a float page; the region is `limits.numPages` of them. */
  readonly pageBytes: number;
  /** How older pages are rounded; null: not at all. Page p starts at p * unitBytes of the same region. */
  readonly packed: {
    readonly precision: PackedKvPrecision;
    readonly pageBytes: number;
    readonly unitBytes: number;
  } | null;
  /** Rounds whole float pages into packed ones; they must not be released before this resolves. */
  packPages(moves: readonly { readonly from: number; readonly to: number }[]): Promise<void>;
  /** The bytes of a page, to be copied or kept; a view, only while no step runs. */
  bytesOf(tier: 'float' | 'packed', index: number): Uint8Array;
}

/** What activations and KV pages are sized for. */
export interface ModelLimits {
  /** Most rows in one step. */
  readonly maxBatchTokens: number;
  /** Most sequences in one step. */
  readonly maxSequences: number;
  /** Most rows with logits in one step. */
  readonly maxLogitRows: number;
  /** Float KV pages that fit into the region all pages share. */
  readonly numPages: number;
  /** How exactly K and V are written. Default f16. */
  readonly kvPrecision?: FloatKvPrecision;
  /** How older pages are rounded; default null: not at all. */
  readonly packedPrecision?: PackedKvPrecision | null;
}

/** What an architecture reads its configuration from. */
export interface ModelFile {
  readonly gguf: GgufFile;
  readonly shape: DecoderShape;
  /** Longest sequence that will be run; decides between short and long rope factors. */
  readonly maxContextTokens: number;
}

/** Adapters that one row can have; the row lists of a step are sized for them. */
export const MAX_STACKED_ADAPTERS = 4;
