import { z } from 'zod';
import { EDGE_RELATIONS } from '../schemas/node.ts';
import { timeMs, uuid } from '../schemas/primitives.ts';
import { recordText } from '../search/record-text.ts';
import { RECORD_KINDS, type MemoryRecord } from '../types.ts';
import { after, given, isSeen, limit } from './inputs.ts';
import { defineOperation, notFound, type MemoryOperation } from './operation.ts';

type SeenKind = Exclude<MemoryRecord['kind'], 'state'>;
const SEEN_KINDS = RECORD_KINDS.filter((kind) => kind !== 'state') as [SeenKind, ...SeenKind[]];
/** Of a text in a list; the whole is in `memory.get`. */
const MAX_PREVIEW = 512;

const previewOf = (record: MemoryRecord): { readonly text: string; readonly isCut: boolean } => {
  const words = recordText(record);
  return { text: words.slice(0, MAX_PREVIEW).toWellFormed(), isCut: words.length > MAX_PREVIEW };
};

const list = defineOperation({
  name: 'memory.list',
  summary: 'What is remembered, by kind and time, page by page, with the beginning of each text.',
  scope: 'read',
  input: z.strictObject({
    kinds: z.array(z.enum(SEEN_KINDS)).min(1).max(SEEN_KINDS.length).default(SEEN_KINDS),
    fromMs: timeMs.optional(),
    toMs: timeMs.optional(),
    order: z.enum(['newest', 'oldest']).default('newest'),
    limit: limit.default(50),
    after: after.optional(),
  }),
  async run(memory, tenant, { fromMs, toMs, ...query }) {
    const filter = given({ createdFromMs: fromMs, createdToMs: toMs });
    const page = await memory.store.find(tenant, given({ ...query, filter }));
    return {
      records: page.records
        .filter((record) => isSeen(memory, record))
        .map((record) => {
          const { id, kind, createdMs, updatedMs, expiresMs, fields } = record;
          return { id, kind, createdMs, updatedMs, expiresMs, fields: { ...fields }, ...previewOf(record) };
        }),
      next: page.next,
    };
  },
});

const graph = defineOperation({
  name: 'memory.graph',
  summary: 'What can be reached from a record in a few steps, with all edges between.',
  scope: 'read',
  input: z.strictObject({
    id: uuid,
    hops: z.int().min(1).max(3).default(2),
    maxNodes: z.int().min(2).max(500).default(100),
    maxEdges: z.int().min(1).max(2000).default(500),
    relations: z.array(z.enum(EDGE_RELATIONS)).min(1).max(EDGE_RELATIONS.length).optional(),
  }),
  async run(memory, tenant, { id, hops, maxNodes, maxEdges, relations }) {
    const [start] = await memory.store.get(tenant, [id]);
    if (!isSeen(memory, start)) throw notFound(`there is no record ${id}`);
    // One more than is told: whether that was everything.
    const reached = await memory.graph.expand(tenant, [id], given({ hops, maxNodes, relations }));
    const others = reached.filter((one) => one.id !== id);
    const told = others.slice(0, maxNodes - 1);
    const records = told.length === 0 ? [] : await memory.store.get(tenant, told.map((one) => one.id)); // prettier-ignore
    const nodes = [
      { id, kind: start.kind, hops: 0, strength: 1, ...previewOf(start) },
      ...told.flatMap(({ id: other, hops: steps, strength }, index) => {
        const record = records[index];
        return isSeen(memory, record)
          ? [{ id: other, kind: record.kind, hops: steps, strength, ...previewOf(record) }]
          : [];
      }),
    ];
    const shown = new Set(nodes.map((node) => node.id));
    const query = { ids: [...shown], direction: 'out', limit: maxEdges + 1, relations } as const;
    const edges = await memory.store.edgesOf(tenant, given(query));
    return {
      nodes,
      edges: edges
        .slice(0, maxEdges)
        .filter(({ from, to }) => shown.has(from) && shown.has(to))
        .map(({ from, to, relation, weight, confidence, updatedMs }) => ({
          from,
          to,
          relation,
          weight,
          confidence,
          updatedMs,
        })),
      isComplete: told.length === others.length && edges.length <= maxEdges,
    };
  },
});

export const browseOperations: readonly MemoryOperation[] = [list, graph];
