import { z } from 'zod';
import { withoutUndefined } from '../common/store-access.ts';
import { timeMs, uuid } from '../schemas/primitives.ts';
import { recordText } from '../search/record-text.ts';
import type { MemoryRecord } from '../types.ts';
import { after, getVisible, isVisible, limit, previewOf, relations, VISIBLE_KINDS, visibleKinds } from './inputs.ts';
import { defineOperation, type MemoryOperation } from './operation.ts';

/** The start of its text; `memory.get` returns all of it. */
const partOf = (record: MemoryRecord): { readonly text: string; readonly isCut: boolean } => {
  const whole = recordText(record);
  const text = previewOf(whole);
  return { text, isCut: text.length < whole.length };
};

const list = defineOperation({
  name: 'memory.list',
  summary: 'Lists records by kind and time, page by page, with the start of each text.',
  input: z.strictObject({
    kinds: visibleKinds.default(VISIBLE_KINDS),
    fromMs: timeMs.optional(),
    toMs: timeMs.optional(),
    order: z.enum(['newest', 'oldest']).default('newest'),
    limit: limit.default(50),
    after: after.optional(),
  }),
  async run(memory, tenant, { fromMs, toMs, ...query }) {
    const filter = withoutUndefined({ createdFromMs: fromMs, createdToMs: toMs });
    const page = await memory.store.find(tenant, withoutUndefined({ ...query, filter }));
    return {
      records: page.records
        .filter((record) => isVisible(memory, record))
        .map((record) => {
          const { id, kind, createdMs, updatedMs, expiresMs, fields } = record;
          return { id, kind, createdMs, updatedMs, expiresMs, fields: { ...fields }, ...partOf(record) };
        }),
      next: page.next,
    };
  },
});

const graph = defineOperation({
  name: 'memory.graph',
  summary: 'The records within a few steps of one, with all edges between them.',
  input: z.strictObject({
    id: uuid,
    hops: z.int().min(1).max(3).default(2),
    maxNodes: z.int().min(2).max(500).default(100),
    maxEdges: z.int().min(1).max(2000).default(500),
    relations: relations.optional(),
  }),
  async run(memory, tenant, { id, hops, maxNodes, maxEdges, relations: names }) {
    const start = await getVisible(memory, tenant, id);
    // One more than is returned shows whether that was everything.
    const reached = await memory.graph.expand(tenant, [id], withoutUndefined({ hops, maxNodes, relations: names }));
    const others = reached.filter((one) => one.id !== id);
    const shown = others.slice(0, maxNodes - 1);
    const records = shown.length === 0 ? [] : await memory.store.get(tenant, shown.map((one) => one.id)); // prettier-ignore
    const nodes = [
      { id, kind: start.kind, hops: 0, strength: 1, ...partOf(start) },
      ...shown.flatMap(({ id: other, hops: steps, strength }, index) => {
        const record = records[index];
        return isVisible(memory, record)
          ? [{ id: other, kind: record.kind, hops: steps, strength, ...partOf(record) }]
          : [];
      }),
    ];
    const ids = new Set(nodes.map((node) => node.id));
    const query = { ids: [...ids], direction: 'out', limit: maxEdges + 1, relations: names } as const;
    const edges = await memory.store.edgesOf(tenant, withoutUndefined(query));
    return {
      nodes,
      edges: edges
        .slice(0, maxEdges)
        .filter(({ from, to }) => ids.has(from) && ids.has(to))
        .map((edge) => ({ ...edge })),
      isComplete: shown.length === others.length && edges.length <= maxEdges,
    };
  },
});

export const browseOperations: readonly MemoryOperation[] = [list, graph];
