import type { BlockFile } from './block-file.ts';

/** A larger score is nearer; `l2` is minus the squared distance. */
export type Metric = 'cosine' | 'dot' | 'l2';

export interface VectorHit {
  readonly key: number;
  readonly score: number;
}

export interface VectorQuery {
  readonly vector: Float32Array;
  /** 1 to `MAX_K`. */
  readonly k: number;
  /** Candidates of a graph search, at least k. Default 64. */
  readonly ef?: number;
  /** Applied during the search, so that k results come back whenever k match. */
  readonly filter?: VectorFilter;
}

export interface VectorFilter {
  has(key: number): boolean;
  /** Number of matching keys, if known; few are scanned. */
  readonly size?: number;
  /** The matching keys, if known. */
  keys?(): Iterable<number>;
}

/** Largest k and `ef`. */
export const MAX_K = 10_000;

/**
 * Vectors by key (a positive integer below 2^53). `add` replaces the vector of an existing key. `invalid_option`: another length,
 * NaN or infinite values, a zero vector with cosine, k or ef out of range.
 */
export interface VectorIndex {
  readonly dim: number;
  readonly metric: Metric;
  readonly size: number;
  /** Whether searches walk a graph instead of comparing with everything. */
  readonly hasGraph: boolean;
  /** Done when it returns if there is room; otherwise memory is grown first, asynchronously. */
  add(key: number, vector: Float32Array): Promise<void>;
  /** With all threads. Keys must be unique. */
  addMany(keys: readonly number[], vectors: Float32Array): Promise<void>;
  has(key: number): boolean;
  get(key: number): Float32Array | null;
  delete(key: number): boolean;
  /** The nearest first; equal scores by key. */
  search(query: VectorQuery): readonly VectorHit[];
  /** Writes the changes since the last `save` or `open` of this file, atomically; `open` returns `seq`. */
  save(file: BlockFile, seq: number): SaveReport;
  /** Size of vectors, graph and tables. */
  readonly memoryBytes: number;
  /** Throws when the index is inconsistent. */
  checkIntegrity(): void;
  dispose(): Promise<void>;
}

export interface SaveReport {
  readonly generation: number;
  readonly blocksWritten: number;
}
