import type { CandidateEdge } from '../../memory/search/rerank.ts';

/** A retrieved record as input of the ranking. */
export interface RankCandidate {
  /** Null without one in the query's space. */
  readonly vector: Float32Array | null;
  /** Cosine with the query; null if `vector` is. */
  readonly similarity: number | null;
  /** Score without re-ranking; replaces a missing similarity. */
  readonly score: number;
  /** Steps along the graph from a nearest record; 0: it is one. */
  readonly hops: number;
  /** To other candidates of the same list. */
  readonly edges: readonly CandidateEdge[];
}

export interface RankQuery {
  readonly query: Float32Array;
  readonly candidates: readonly RankCandidate[];
}

/** Whether the answer used it; null: unknown, because it was not shown or the answer does not tell. */
export type Use = boolean | null;

/** A query whose answer was not bad, and the candidates that the answer used. */
export interface RankExample extends RankQuery {
  /** One for each candidate. */
  readonly used: readonly Use[];
  /** Conversation or question: never on both sides of a split, and one vote in the evaluation. */
  readonly group: string;
}

/** A learned re-ranker as plain data. */
export interface RerankerState {
  readonly format: 'graph-attention';
  readonly version: 1;
  /** Length of the vectors it was trained on. */
  readonly dim: number;
  /** Seed of the query directions. */
  readonly seed: number;
  /** Layout: `parameters.ts`. */
  readonly parameters: Float32Array;
}
