import type { CandidateEdge } from '../../memory/search/rerank.ts';

/** Something that was retrieved, as the ranking sees it. */
export interface RankCandidate {
  /** Null: it has none in the query's space. */
  readonly vector: Float32Array | null;
  /** Cosine with the query; null exactly where `vector` is. */
  readonly similarity: number | null;
  /** By which it is ranked without re-ranking; stands in for a similarity that is not there. */
  readonly score: number;
  /** Steps along the graph from what was near; 0: it was near itself. */
  readonly hops: number;
  /** To other candidates of the same list. */
  readonly edges: readonly CandidateEdge[];
}

/** What was retrieved for one query. */
export interface RankQuery {
  readonly query: Float32Array;
  readonly candidates: readonly RankCandidate[];
}

/** Whether the answer used it; null: nobody knows, for it was not shown, or the answer does not tell. */
export type Use = boolean | null;

/** A query whose answer was good, and which of the candidates that answer used. */
export interface RankExample extends RankQuery {
  /** One for each candidate. */
  readonly used: readonly Use[];
  /** The conversation or question it belongs to: never on both sides of a split, and one voice where it is judged. */
  readonly group: string;
}

/** A re-ranking that was learned: everything it needs to be what it was. */
export interface RerankerState {
  readonly format: 'graph-attention';
  readonly version: 1;
  /** Length of the vectors it was trained on. */
  readonly dim: number;
  /** Of the directions a query is looked at along. */
  readonly seed: number;
  /** Laid out by `parameters.ts`. */
  readonly parameters: Float32Array;
}
