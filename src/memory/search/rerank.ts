import { assert } from '../../core/errors.ts';
import type { MemoryEdge, MemoryRecord, MemoryStore } from '../types.ts';

/** An edge between two candidates of one search. */
export interface CandidateEdge {
  /** Index of the candidate at the other end. */
  readonly other: number;
  readonly relation: string;
  /** As it was last written. */
  readonly weight: number;
  readonly confidence: number;
  /** Since it was last written; never below 0. */
  readonly ageMs: number;
}

/** What a search found, before it is put in order. */
export interface RerankCandidate {
  readonly record: MemoryRecord;
  /** Null: it has no vector in this space. */
  readonly similarity: number | null;
  /** By which it would be ranked. */
  readonly score: number;
  readonly hops: number;
  /** Those to other candidates, in either direction. */
  readonly edges: readonly CandidateEdge[];
}

export interface RerankRequest {
  readonly tenant: string;
  /** Fingerprint of what made `query` and the candidates' vectors. */
  readonly space: string;
  readonly query: Float32Array;
  readonly candidates: readonly RerankCandidate[];
}

/** A score for each candidate, the best the highest; null: the order they have stays. */
export type Rerank = (request: RerankRequest) => readonly number[] | null | Promise<readonly number[] | null>;

type Ranked = Omit<RerankCandidate, 'edges'>;

/** What one call of the store takes. */
const CALL_ITEMS = 1000;
/** Of one search; beyond them, the lightest count for nothing. */
const MAX_EDGES = 10_000;

/** The best `limit` of what was found, with the scores `rerank` gives them; what it says nothing of, as it was. */
export async function rescore<T extends Ranked>(
  rerank: Rerank,
  store: MemoryStore,
  nowMs: number,
  request: Omit<RerankRequest, 'candidates'>,
  all: readonly T[],
  limit: number,
): Promise<readonly T[]> {
  if (all.length === 0) return all;
  // A step along the graph may reach a thousand: time must not grow with that.
  const found = all.toSorted((a, b) => b.score - a.score || (a.record.id < b.record.id ? -1 : 1)).slice(0, limit);
  const edges = await edgesAmong(store, request.tenant, found, nowMs);
  const candidates = found.map(({ record, similarity, score, hops }, i) => ({
    record,
    similarity,
    score,
    hops,
    edges: edges[i]!,
  }));
  const scores = await rerank({ ...request, candidates });
  if (scores === null) return all;
  assert(scores.length === found.length, `re-ranking ${found.length} candidates gave ${scores.length} scores`);
  return found.map((result, i) => {
    assert(Number.isFinite(scores[i]), `re-ranking gave candidate ${i} of ${found.length} the score ${scores[i]}`);
    return { ...result, score: scores[i]! };
  });
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
    // Out only: an edge among them goes out of one of them.
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
