/** The matrices of a decoder that an adapter can change, by their GGUF names. `output` is the LM head and has no layer. */
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

/** The change of one matrix: W·x becomes W·x + scale · B·(A·x). */
export interface LowRankFactors {
  readonly target: AdapterTarget;
  /** −1 for `output`. */
  readonly layer: number;
  /** Columns of the matrix: the width of x. */
  readonly numCols: number;
  /** Rows of the matrix: the width of its output. */
  readonly numRows: number;
  readonly rank: number;
  /** alpha / rank, from the file or the trainer. */
  readonly scale: number;
  /** f32[rank × numCols] */
  readonly a: Float32Array;
  /** f32[numRows × rank] */
  readonly b: Float32Array;
}

/** A set of low-rank additions to one kind of model; immutable: training creates a new one with another hash. */
export interface Adapter {
  /** The architecture in its file, checked when the adapter is bound to a model. */
  readonly architecture: string;
  /**
   * SHA-256 (hex) of targets, layers, shapes, scales and factors in canonical order: the same numbers have the same
   * hash, whatever their file. Part of every cache key, because K and V of later layers depend on it; names never are.
   */
  readonly contentHash: string;
  /** Ordered by layer, then by `ADAPTER_TARGETS`; at most one per matrix. */
  readonly factors: readonly LowRankFactors[];
}

/** The sizes of one layer, instead of those of the whole model. */
interface LayerSizes extends Pick<AdapterBase, 'numKvHeads' | 'headDim' | 'feedForwardDim'> {
  /** Whether the layer has no matrix of values; default false. */
  readonly hasNoValues?: boolean;
}

/** The dimensions of a decoder that an adapter must fit; `DecoderShape` of the models has them. */
export interface AdapterBase {
  readonly architecture: string;
  readonly numLayers: number;
  readonly embeddingDim: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly feedForwardDim: number;
  readonly vocabSize: number;
  /** One entry per layer, if sizes differ between layers. */
  readonly layerSizes?: readonly LayerSizes[];
  /** Whether feed-forward layers have a gate; default true. */
  readonly isGated?: boolean;
  /** Layers without attention; default none. */
  readonly recurrentLayers?: readonly number[];
  /** Only in mixtures of experts, whose feed-forward matrices adapters cannot change. */
  readonly experts?: { readonly numExperts: number };
  /** Whether the matrix of queries also has gates, so that adapters cannot change it; default false. */
  readonly hasQueryGates?: boolean;
  /** Only with latent attention, whose matrices adapters cannot change. */
  readonly latent?: { readonly rank: number };
}
