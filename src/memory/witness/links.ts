import type { MemoryServices } from '../common/services.ts';
import type { LinkedWitness } from '../schemas/witness.ts';
import { sessionRecordId } from '../sessions/session-id.ts';
import type { MemoryEdge, MemoryStore } from '../types.ts';
import type { ResolvedWitnessLogOptions } from './options.ts';

type NewEdge = Omit<MemoryEdge, 'updatedMs'>;

export interface LinkContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly options: Pick<ResolvedWitnessLogOptions, 'numSimilar' | 'minSimilarity'>;
}

/** Session -> request, for the sessions that exist. */
async function sessionEdges(
  { store, services }: LinkContext,
  tenant: string,
  linked: readonly LinkedWitness[],
): Promise<NewEdge[]> {
  const withSession = linked.filter(({ entry }) => entry.sessionId !== null);
  const idOf = ({ entry }: LinkedWitness): string => sessionRecordId(services.sha256, tenant, entry.sessionId!);
  const ids = [...new Set(withSession.map(idOf))];
  if (ids.length === 0) return [];
  const there = await store.get(tenant, ids);
  const known = new Set(ids.filter((_, index) => there[index] !== null));
  return withSession
    .filter((item) => known.has(idOf(item)))
    .map((item) => ({ from: idOf(item), to: item.id, relation: 'session', weight: 1, confidence: 1 }));
}

/** Request -> the nearest earlier requests, weighted by how near they are. */
async function similarEdges({ store, options }: LinkContext, tenant: string, item: LinkedWitness): Promise<NewEdge[]> {
  const { queryEmbedding: vector, space } = item.entry;
  if (vector === null || space === null || options.numSimilar === 0) return [];
  // Entries of one batch are all there already: each links only to those before it, so that a pair has one edge.
  const filter = { fields: [{ field: 'sequence', is: '<', value: item.link.sequence }] } as const;
  const near = await store.nearest(tenant, {
    vector,
    space,
    kinds: ['witness'],
    k: options.numSimilar,
    filter,
    withVectors: false,
  });
  return near
    .filter(({ similarity }) => similarity >= options.minSimilarity)
    .map(({ record, similarity }) => ({
      from: item.id,
      to: record.id,
      relation: 'same-topic',
      weight: Math.max(0, similarity),
      confidence: Math.min(1, Math.max(0, similarity)),
    }));
}

/** Puts fresh entries into the graph; the number of edges. */
export async function linkWitnesses(
  context: LinkContext,
  tenant: string,
  linked: readonly LinkedWitness[],
): Promise<number> {
  const edges = await sessionEdges(context, tenant, linked);
  for (const item of linked) edges.push(...(await similarEdges(context, tenant, item)));
  for (let start = 0; start < edges.length; start += 1000)
    await context.store.putEdges(tenant, edges.slice(start, start + 1000));
  return edges.length;
}
