/** The matrices of a decoder that an adapter can add to, by the names GGUF gives them. `output` is the LM head and has no layer. */
export const ADAPTER_TARGETS = [
  'attn_q',
  'attn_k',
  'attn_v',
  'attn_output',
  'ffn_gate',
  'ffn_up',
  'ffn_down',
  'output',
] as const;

/** The matrices of a model that an adapter can change, by name. */
export type AdapterTarget = (typeof ADAPTER_TARGETS)[number];

/** What is added to one matrix: W·x becomes W·x + scale · B·(A·x). */
export interface LowRankFactors {
  readonly target: AdapterTarget;
  /** −1 for `output`. */
  readonly layer: number;
  /** Columns of the matrix: the width of x. */
  readonly numCols: number;
  /** Rows of the matrix: the width of what it gives. */
  readonly numRows: number;
  readonly rank: number;
  /** alpha / rank, as the file or the trainer says. */
  readonly scale: number;
  /** f32[rank × numCols] */
  readonly a: Float32Array;
  /** f32[numRows × rank] */
  readonly b: Float32Array;
}

/** A set of low-rank additions to one kind of model; never changed in place: what has learned is a new one with another hash. */
export interface Adapter {
  /** The architecture its file names, checked when it is bound to a model. */
  readonly architecture: string;
  /**
   * SHA-256 (hex) of targets, layers, shapes, scales and factors in canonical order: the same numbers have the same hash from whichever
   * file they came. Part of every cache key, since K and V of later layers depend on it; names never are.
   */
  readonly contentHash: string;
  /** Ordered by layer, then by `ADAPTER_TARGETS`; at most one for each matrix. */
  readonly factors: readonly LowRankFactors[];
}

/** What an adapter must fit: the shape of a decoder, as far as its matrices go. `DecoderShape` of the models is one. */
export interface AdapterBase {
  readonly architecture: string;
  readonly numLayers: number;
  readonly embeddingDim: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly feedForwardDim: number;
  readonly vocabSize: number;
}
