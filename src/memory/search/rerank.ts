import { assert } from '../../core/errors.ts';
import type { MemoryEdge, MemoryRecord, MemoryStore } from '../types.ts';

/** An edge between two candidates of one search. */
export interface CandidateEdge {
  /** Index of the candidate at the other end. */
  readonly other: number;
  readonly relation: string;
  readonly weight: number;
  readonly confidence: number;
  /** Since the last write; at least 0. */
  readonly ageMs: number;
}

/** A search result before re-ranking. */
interface RerankCandidate {
  readonly record: MemoryRecord;
  /** Null: no vector in this space. */
  readonly similarity: number | null;
  readonly score: number;
  readonly hops: number;
  /** Edges to other candidates, in both directions. */
  readonly edges: readonly CandidateEdge[];
}

export interface RerankRequest {
  /** Fingerprint of the embedder of `query` and the candidates. */
  readonly space: string;
  readonly query: Float32Array;
  readonly candidates: readonly RerankCandidate[];
}

/** A score for each candidate, higher is better; null: keep the order. */
export type RankCandidates = (request: RerankRequest) => readonly number[] | null;

/** Re-ranks search results by tenant. */
export interface Rerank {
  /** Null: keep the order, and read nothing for it. */
  of(tenant: string, space: string): RankCandidates | null | Promise<RankCandidates | null>;
  /** Drops cached state of a tenant. */
  forget(tenant: string): void;
}

type Ranked = Omit<RerankCandidate, 'edges'>;

/** Candidates that are re-ranked, and stored for learning. */
export const MAX_RERANKED = 32;
/** Ids per call of the store. */
const CALL_ITEMS = 1000;
/** Per search; the heaviest first. */
const MAX_EDGES = 10_000;

/** Re-scores the first `limit` of `found`; the others follow in their order. */
export async function rescore<T extends Ranked>(
  rank: RankCandidates,
  store: MemoryStore,
  nowMs: number,
  request: Omit<RerankRequest, 'candidates'> & { readonly tenant: string },
  found: readonly T[],
  limit: number,
): Promise<readonly T[]> {
  if (found.length === 0) return found;
  const head = found.slice(0, limit);
  const { tenant, ...asked } = request;
  const edges = await edgesAmong(store, tenant, head, nowMs);
  const candidates = head.map(({ record, similarity, score, hops }, i) => ({ record, similarity, score, hops, edges: edges[i]! })); // prettier-ignore
  const scores = rank({ ...asked, candidates });
  if (scores === null) return found;
  assert(scores.length === head.length, `re-ranking ${head.length} candidates gave ${scores.length} scores`);
  const bad = scores.findIndex((score) => !Number.isFinite(score));
  assert(bad === -1, `re-ranking gave candidate ${bad} of ${head.length} the score ${scores[bad]}`);
  const worst = Math.min(...scores);
  const behind = found[limit]?.score ?? 0;
  return found.map((result, i) => ({ ...result, score: scores[i] ?? worst - 1 - (behind - result.score) }));
}

async function edgesAmong(
  store: MemoryStore,
  tenant: string,
  found: readonly Ranked[],
  nowMs: number,
): Promise<CandidateEdge[][]> {
  const indexOf = new Map(found.map(({ record }, i) => [record.id, i]));
  const lists: CandidateEdge[][] = found.map(() => []);
  const ids = [...indexOf.keys()];
  for (let from = 0; from < ids.length; from += CALL_ITEMS) {
    // Edges among them go out of one of them.
    const part = { ids: ids.slice(from, from + CALL_ITEMS), direction: 'out', limit: MAX_EDGES } as const;
    for (const edge of await store.edgesOf(tenant, part)) place(lists, indexOf, edge, nowMs);
  }
  return lists;
}

function place(
  lists: readonly CandidateEdge[][],
  indexOf: ReadonlyMap<string, number>,
  { from, to, relation, weight, confidence, updatedMs }: MemoryEdge,
  nowMs: number,
): void {
  const [start, end] = [indexOf.get(from), indexOf.get(to)];
  if (start === undefined || end === undefined || start === end) return;
  const rest = { relation, weight, confidence, ageMs: Math.max(0, nowMs - updatedMs) };
  lists[start]!.push({ other: end, ...rest });
  lists[end]!.push({ other: start, ...rest });
}
