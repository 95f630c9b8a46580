import type { TopLogits } from '../core/top-logits.ts';
import type { FloatKvPrecision, KernelPack, Offset, PackedKvPrecision } from '../kernels/contract.ts';
import type { GgufFile } from '../gguf/types.ts';

/** The dimensions of a decoder, from GGUF metadata. */
export interface DecoderShape {
  readonly architecture: string;
  /** False: an encoder. Tokens also see later ones, sequences are computed whole, and there are no logits. */
  readonly isCausal: boolean;
  readonly numLayers: number;
  /** Layers with keys and values of their own; the others have no KV pages. */
  readonly numKvLayers: number;
  /** The layers without attention; only in models with such layers. */
  readonly recurrentLayers?: readonly number[];
  readonly embeddingDim: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly feedForwardDim: number;
  /** One entry per layer, if sizes differ between layers; those above are then the largest. */
  readonly layerSizes?: readonly LayerSizes[];
  /** Whether feed-forward layers multiply by a gate; default true. */
  readonly isGated?: boolean;
  readonly vocabSize: number;
  /** The context length of the model's training. */
  readonly contextLength: number;
  /** Only in mixtures of experts. */
  readonly experts?: ExpertShape;
  /** Whether attention has gates, in the matrix of queries; default false. */
  readonly hasQueryGates?: boolean;
  /** Only with multi-head latent attention: pages then have one head, of `rank + rotaryDim` values. */
  readonly latent?: LatentShape;
}

/** The sizes of one layer. */
export interface LayerSizes {
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly feedForwardDim: number;
  /** Whether the layer has no matrix of values; default false. */
  readonly hasNoValues?: boolean;
}

/** The dimensions of multi-head latent attention. */
export interface LatentShape {
  /** Of the vector that keys and values of a token are computed from. */
  readonly rank: number;
  /** Of the vector that queries are computed from; 0: from the input. */
  readonly queryRank: number;
  /** Values of a head that are rotated, and those that are not. */
  readonly rotaryDim: number;
  readonly plainDim: number;
  readonly valueDim: number;
}

/** The dimensions of a mixture of experts. */
export interface ExpertShape {
  readonly numExperts: number;
  /** Experts per token. */
  readonly numUsed: number;
  /** Of one expert. */
  readonly feedForwardDim: number;
  /** Of the expert that every token uses; 0: none. */
  readonly sharedFeedForwardDim: number;
  /** Layers before the first with experts. */
  readonly numDenseLayers: number;
}

/** The input of one step: rows of tokens from one or several sequences, as plain data. */
export interface StepBatch {
  /** One entry per row. */
  readonly tokenIds: ArrayLike<number>;
  readonly positions: ArrayLike<number>;
  /** pageId * PAGE_TOKENS + slot, the destination of the row's K and V. */
  readonly slots: ArrayLike<number>;
  readonly sequences: readonly StepSequence[];
  /** Rows with requested next-token logits, in this order. */
  readonly logitRows: ArrayLike<number>;
  /** Rows with requested final hidden states, in this order; default none. */
  readonly hiddenRows?: ArrayLike<number>;
  /** Number of top logits per row for `topOf`; default 0. */
  readonly numTop?: number;
  /** The caller will take the top logits, and fetch the rows with `readLogits` if those do not suffice; default false. */
  readonly leavesLogits?: boolean;
  /** Adapters of some rows; default none. A row may be in several. */
  readonly adapters?: readonly StepAdapter[];
  /** Rows whose input is a vector instead of their token's; default none. */
  readonly vectors?: readonly StepVectors[];
}

/** Inputs of consecutive rows, such as those of an image. */
export interface StepVectors {
  readonly firstRow: number;
  /** f32[rows × embeddingDim] */
  readonly values: Float32Array;
}

/** An adapter with its rows of a batch. */
export interface StepAdapter {
  /** The slot passed to `setAdapter`. */
  readonly slot: number;
  /** In addition to the scale in its weights. */
  readonly scale: number;
  readonly rows: ArrayLike<number>;
}

/** An adapter's change of one matrix: W·x becomes W·x + the sum of scale · b·(a·x) over its parts. */
export interface AdapterWeights {
  /** `blk.N.attn_q` and so on, or `output`. */
  readonly site: string;
  readonly numCols: number;
  readonly numRows: number;
  /** Several if the rank exceeds `MAX_RANK` or memory is not contiguous. */
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
  /** Tokens that the last of these rows sees, including itself. */
  readonly contextTokens: number;
  /**
   * Enough pages for contextTokens, oldest first; an entry e < 0 is page ~e of the packed region. Rows are written only to float pages.
   */
  readonly pageIds: ArrayLike<number>;
  /** Required by models with recurrent layers: see `SequenceStates`. */
  readonly state?: StepState;
}

/** A sequence's state in a step. */
export interface StepState {
  readonly index: number;
  /** Copies the state as it is after `numRows` rows of the step; null: no copy. */
  readonly copy: { readonly index: number; readonly numRows: number } | null;
}

/** The memory of all KV pages. */
export interface KvMemory {
  readonly base: Offset;
  readonly pageBytes: number;
  readonly numPages: number;
}

export interface LoadedModel {
  readonly shape: DecoderShape;
  readonly pack: KernelPack;
  readonly kv: KvMemory;
  readonly pages: KvPageStore;
  /** Null: the state of a sequence is its KV pages. */
  readonly states: SequenceStates | null;
  readonly limits: ModelLimits;
  /** Bytes allocated in the arena, by use. */
  readonly memory: {
    readonly weightBytes: number;
    /** KV pages and states. */
    readonly kvBytes: number;
    readonly activationBytes: number;
    /** The layers and bytes of each side; only if a GPU was chosen. */
    readonly split?: LayerSplitReport;
  };
  /**
   * Runs one step and returns f32[logitRows.length × vocabSize]; the view is valid until the next call. Throws before
   * computing if the batch exceeds a limit.
   */
  forward(batch: StepBatch): Promise<Float32Array>;
  /** The logits of a step that left them on the device; null: they are in memory anyway. */
  readonly readLogits: (() => Promise<Float32Array>) | null;
  /** The top logits of the last step's i-th row with logits, as many as requested; views, valid until the next step. */
  topOf(index: number): TopLogits;
  /** f32[hiddenRows.length × embeddingDim] of the last step, after the final norm; a view, valid until the next step. */
  hiddenStates(): Float32Array;
  /** Sets the weights of a slot; null removes them. They stay in the caller's memory and must not change. */
  setAdapter(slot: number, weights: readonly AdapterWeights[] | null): void;
  dispose(): Promise<void>;
}

/** The memory of KV pages and operations on them between steps. */
export interface KvPageStore {
  readonly pageTokens: number;
  /** Identifies everything besides weights and tokens that determines a page's bits: the kernels, and the rotation for this context. */
  readonly computedBy: string;
  /** Bytes of a float page; the region is `limits.numPages` of them. */
  readonly pageBytes: number;
  /** Precision of packed pages; null: no packing. Page p starts at p * unitBytes of the same region. */
  readonly packed: {
    readonly precision: PackedKvPrecision;
    readonly pageBytes: number;
    readonly unitBytes: number;
  } | null;
  /** Packs whole float pages; they must not be released before this resolves. */
  packPages(moves: readonly { readonly from: number; readonly to: number }[]): Promise<void>;
  /** Copies a page within its tier, while no step runs. */
  copyPage(tier: 'float' | 'packed', from: number, to: number): void;
  /** Whether `bytesOf` shows computed pages; false: they are in a device's memory, and can only be written. */
  readonly isReadable: boolean;
  /** The bytes of a page; a view, valid only while no step runs. */
  bytesOf(tier: 'float' | 'packed', index: number): Uint8Array;
}

/** The memory of recurrent layers: a fixed number of bytes per sequence, whatever its length. */
export interface SequenceStates {
  readonly numStates: number;
  readonly stateBytes: number;
  /** For copying; a view, valid only while no step runs. */
  bytesOf(index: number): Uint8Array;
}

/** Sizes of activations and KV pages. */
export interface ModelLimits {
  /** Maximum rows of one step. */
  readonly maxBatchTokens: number;
  readonly maxSequences: number;
  /** Maximum rows with logits of one step. */
  readonly maxLogitRows: number;
  /** Float KV pages that fit into the shared region. */
  readonly numPages: number;
  /** Precision of new K and V. Default f16. */
  readonly kvPrecision?: FloatKvPrecision;
  /** Precision of packed pages; default null: no packing. */
  readonly packedPrecision?: PackedKvPrecision | null;
  /** States of models with recurrent layers, more than `maxSequences`. Default 0. */
  readonly numStates?: number;
}

/** Inputs of an architecture's configuration. */
export interface ModelFile {
  readonly gguf: GgufFile;
  readonly shape: DecoderShape;
  /** Longest sequence to run; decides between short and long rope factors. */
  readonly maxContextTokens: number;
}

/** Adapters per row; the row lists of a step are sized for this number. */
export const MAX_STACKED_ADAPTERS = 4;

/** The layers and bytes on each side, for people. */
export interface LayerSplitReport {
  readonly numLayers: number;
  readonly numGpuLayers: number;
  readonly gpu: SideBytes;
  readonly cpu: SideBytes;
}

export interface SideBytes {
  readonly weightBytes: number;
  /** KV pages and states. */
  readonly kvBytes: number;
}
