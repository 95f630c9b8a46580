import { MAX_RERANKED, type CandidateEdge } from '../../memory/search/rerank.ts';
import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import type { MemoryEdge, MemoryRecord, MemoryStore } from '../../memory/types.ts';
import { isInformative } from '../graph-attention/list-loss.ts';
import type { RankCandidate, RankExample, Use } from '../graph-attention/types.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import { conversationsOf } from './conversations.ts';

/** Candidate lists to train on, with their requests. */
export interface MarkedLists {
  /** Space of all vectors; null without lists. */
  readonly space: string | null;
  readonly examples: readonly RankExample[];
  /** One for each list. */
  readonly requestIds: readonly string[];
}

/** Newest requests that are read; their lists must fit into the learning thread. */
export const MAX_REQUESTS = 2000;
/** One call returns at most ten thousand edges. */
const EDGE_IDS = 100;
const RECORD_IDS = 500;
const MAX_EDGES = 10_000;

type Marked = Trajectory & {
  readonly candidates: NonNullable<Trajectory['candidates']>;
  readonly embedding: Float32Array;
};

/** Wrong answers do not show which sources help. */
const isMarked = (one: Trajectory): one is Marked =>
  one.candidates !== undefined &&
  one.embedding !== null &&
  one.verdict !== 'failure' &&
  isInformative(one.retrieved.map(({ isUsed }) => isUsed));

/** Reads the candidate lists of requests whose used sources are known, without deleted records. */
export async function gatherLists(
  store: MemoryStore,
  trajectories: Trajectories,
  tenant: string,
): Promise<MarkedLists> {
  const found = (await trajectories.find(tenant, { limit: MAX_REQUESTS, order: 'newest' })).filter(isMarked);
  const space = found[0]?.space ?? null;
  const marked = found.filter((one) => one.space === space).toReversed();
  const ids = [...new Set(marked.flatMap(({ candidates }) => candidates.map(({ id }) => id)))];
  const records = await readRecords(store, tenant, ids);
  const edges = await readEdges(store, tenant, [...records.keys()]);
  const groups = conversationsOf(marked);
  const lists = marked.map((one, i) => ({ requestId: one.requestId, example: toExample(one, groups[i]!, records, edges) })); // prettier-ignore
  const kept = lists.filter(({ example }) => isInformative(example.used));
  return {
    space: kept.length === 0 ? null : space,
    examples: kept.map(({ example }) => example),
    requestIds: kept.map(({ requestId }) => requestId),
  };
}

async function readRecords(store: MemoryStore, tenant: string, ids: readonly string[]) {
  const records = new Map<string, MemoryRecord>();
  for (let from = 0; from < ids.length; from += RECORD_IDS) {
    const found = await store.get(tenant, ids.slice(from, from + RECORD_IDS));
    for (const record of found) if (record !== null) records.set(record.id, record);
  }
  return records;
}

/** By source record. */
async function readEdges(store: MemoryStore, tenant: string, ids: readonly string[]) {
  const edges = new Map<string, MemoryEdge[]>();
  for (let from = 0; from < ids.length; from += EDGE_IDS) {
    const part = { ids: ids.slice(from, from + EDGE_IDS), direction: 'out', limit: MAX_EDGES } as const;
    for (const edge of await store.edgesOf(tenant, part)) edges.set(edge.from, [...(edges.get(edge.from) ?? []), edge]);
  }
  return edges;
}

function toExample(
  { candidates, retrieved, embedding, space, createdMs }: Marked,
  group: string,
  records: ReadonlyMap<string, MemoryRecord>,
  edges: ReadonlyMap<string, readonly MemoryEdge[]>,
): RankExample {
  const useOf = new Map<string, Use>(retrieved.map(({ id, isUsed }) => [id, isUsed]));
  // Records deleted since are left out.
  const there = candidates.filter(({ id }) => records.has(id)).slice(0, MAX_RERANKED);
  const indexOf = new Map(there.map(({ id }, i) => [id, i]));
  const lists: CandidateEdge[][] = there.map(() => []);
  there.forEach(({ id }, i) => {
    for (const { to, relation, weight, confidence, updatedMs } of edges.get(id) ?? []) {
      const other = indexOf.get(to);
      // An edge written later may depend on the answer.
      if (other === undefined || other === i || updatedMs > createdMs) continue;
      const rest = { relation, weight, confidence, ageMs: createdMs - updatedMs };
      lists[i]!.push({ other, ...rest });
      lists[other]!.push({ other: i, ...rest });
    }
  });
  return {
    query: embedding,
    group,
    used: there.map(({ id }) => useOf.get(id) ?? null),
    candidates: there.map(({ id, similarity, score, hops }, i): RankCandidate => {
      const record = records.get(id)!;
      const vector = record.space === space ? record.vector : null;
      return { vector, similarity: vector === null ? null : similarity, score, hops, edges: lists[i]! };
    }),
  };
}
