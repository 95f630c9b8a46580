import type { BlockFile } from './block-file.ts';

/** How near two vectors are; of all three a larger score is nearer: cosine and dot product as they are, l2 as minus the squared distance. */
export type Metric = 'cosine' | 'dot' | 'l2';

export interface VectorHit {
  readonly key: number;
  readonly score: number;
}

export interface VectorQuery {
  readonly vector: Float32Array;
  /** 1 to `MAX_K`. */
  readonly k: number;
  /** How many candidates a graph search keeps; at least k are. Default 64. */
  readonly ef?: number;
  /** Only keys that pass; asked during the search, so that k results come whenever k pass. */
  readonly filter?: VectorFilter;
}

export interface VectorFilter {
  has(key: number): boolean;
  /** How many keys pass, where that is known: few are scanned one by one. */
  readonly size?: number;
  /** Those keys, where they are known. */
  keys?(): Iterable<number>;
}

/** Most results of one search, and the widest `ef`. */
export const MAX_K = 10_000;

/**
 * Vectors by key (a positive integer below 2^53). `add` of a known key replaces its vector. Refused with `invalid_option`: another
 * length, NaN or infinite values, a zero vector under cosine, k or ef out of range.
 */
export interface VectorIndex {
  readonly dim: number;
  readonly metric: Metric;
  /** Live vectors. */
  readonly size: number;
  /** Whether searches walk a graph; else they compare with everything. */
  readonly hasGraph: boolean;
  /** At once where there is room; else memory is grown first, and kernels start asynchronously. */
  add(key: number, vector: Float32Array): Promise<void>;
  /** Many at once, with all threads where there are several. Keys must be different. */
  addMany(keys: readonly number[], vectors: Float32Array): Promise<void>;
  has(key: number): boolean;
  get(key: number): Float32Array | null;
  delete(key: number): boolean;
  /** The nearest first; equal scores by key. */
  search(query: VectorQuery): readonly VectorHit[];
  /** Writes what changed since the last `save` or `open` of this file; `seq` comes back from `open`. Whole or not at all. */
  save(file: BlockFile, seq: number): SaveReport;
  /** Bytes in memory: vectors, graph, tables. */
  readonly memoryBytes: number;
  /** Throws with what does not fit together. */
  checkIntegrity(): void;
  dispose(): Promise<void>;
}

export interface SaveReport {
  readonly generation: number;
  readonly blocksWritten: number;
}
