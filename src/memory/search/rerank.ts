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
  /** Fingerprint of what made `query` and the candidates' vectors. */
  readonly space: string;
  readonly query: Float32Array;
  readonly candidates: readonly RerankCandidate[];
}

/** A score for each candidate, the best the highest; null: the order they have stays. */
export type RankCandidates = (request: RerankRequest) => readonly number[] | null;

/** Puts what the searches of tenants find in another order. */
export interface Rerank {
  /** What ranks for a tenant in a space; null: the order stays, and nothing is read for it. */
  of(tenant: string, space: string): RankCandidates | null | Promise<RankCandidates | null>;
  /** What is known of a tenant holds no more. */
  forget(tenant: string): void;
}

type Ranked = Omit<RerankCandidate, 'edges'>;

/** So many are put in another order; who learns from what was found keeps as many. */
export const MAX_RERANKED = 32;
/** What one call of the store takes. */
const CALL_ITEMS = 1000;
/** Of one search; beyond them, the lightest count for nothing. */
const MAX_EDGES = 10_000;

/** `found`, the best first, with the scores `rank` gives the first of them; the others stand behind, in the order they have. */
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
