import type { MemoryServices } from '../common/services.ts';
import type { LinkedEntry } from '../schemas/audit.ts';
import { sessionRecordId } from '../sessions/sessions.ts';
import { AUDIT_KIND, type MemoryEdge, type MemoryStore } from '../types.ts';
import type { ResolvedAuditLogOptions } from './options.ts';

type NewEdge = Omit<MemoryEdge, 'updatedMs'>;

export interface LinkContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly options: Pick<ResolvedAuditLogOptions, 'numSimilar' | 'minSimilarity'>;
}

/** Session -> request, for existing sessions. */
async function sessionEdges(
  { store, services }: LinkContext,
  tenant: string,
  linked: readonly LinkedEntry[],
): Promise<NewEdge[]> {
  const withSession = linked.filter(({ entry }) => entry.sessionId !== null);
  const idOf = ({ entry }: LinkedEntry): string => sessionRecordId(services.sha256, tenant, entry.sessionId!);
  const ids = [...new Set(withSession.map(idOf))];
  if (ids.length === 0) return [];
  const there = await store.get(tenant, ids);
  const known = new Set(ids.filter((_, index) => there[index] !== null));
  return withSession
    .filter((item) => known.has(idOf(item)))
    .map((item) => ({ from: idOf(item), to: item.id, relation: 'session', weight: 1, confidence: 1 }));
}

/** Request -> the nearest earlier requests, weighted by similarity. */
async function similarEdges(
  { store, options }: LinkContext,
  tenant: string,
  item: LinkedEntry,
  numLater: number,
): Promise<NewEdge[]> {
  const { queryEmbedding: vector, space } = item.entry;
  const { numSimilar } = options;
  if (vector === null || space === null || numSimilar === 0) return [];
  const { sequence } = item.link;
  const query = { vector, space, kinds: [AUDIT_KIND], withVectors: false } as const;
  // The whole batch is stored already; each entry links only to earlier ones, so that a pair has one edge. A filter costs a
  // check of every entry, so it is used only when later entries took too many of the k places.
  const k = numSimilar + 1 + numLater;
  const some = await store.nearest(tenant, { ...query, k });
  const before = some.filter(({ record }) => Number(record.fields['sequence']) < sequence);
  const filter = { fields: [{ field: 'sequence', is: '<', value: sequence }] } as const;
  const near =
    before.length >= numSimilar || some.length < k
      ? before.slice(0, numSimilar)
      : await store.nearest(tenant, { ...query, k: numSimilar, filter });
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

/** Links new entries into the graph; returns the number of edges. */
export async function linkEntries(
  context: LinkContext,
  tenant: string,
  linked: readonly LinkedEntry[],
): Promise<number> {
  const edges = await sessionEdges(context, tenant, linked);
  for (const [index, item] of linked.entries()) {
    edges.push(...(await similarEdges(context, tenant, item, linked.length - 1 - index)));
  }
  for (let start = 0; start < edges.length; start += 1000)
    await context.store.putEdges(tenant, edges.slice(start, start + 1000));
  return edges.length;
}
