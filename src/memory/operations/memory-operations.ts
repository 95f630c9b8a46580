import { z } from 'zod';
import { EDGE_RELATIONS, MAX_EDGE_WEIGHT, NODE_KINDS } from '../schemas/node.ts';
import { metadata, name, text, timeMs, unit, uuid } from '../schemas/primitives.ts';
import { recordText } from '../search/record-text.ts';
import { RECORD_KINDS, type MemoryRecord } from '../types.ts';
import { conditions, given, includeVectors, isSeen, meaning, minSimilarity, nodeKind } from './inputs.ts';
import { defineOperation, notFound, refuseInput, type MemoryOperation } from './operation.ts';
import { plainRecord, plainReport } from './plain.ts';

const SEEN_KINDS = RECORD_KINDS.filter((kind) => kind !== 'state') as [MemoryRecord['kind'], ...MemoryRecord['kind'][]];
/** Of a text in a list; the whole is in `memory.get`. */
const MAX_PREVIEW = 4096;

const add = defineOperation({
  name: 'memory.add',
  summary: 'Remembers a text; it can be found by meaning from then on.',
  scope: 'write',
  input: z.strictObject({
    text: text(1 << 20, 1),
    kind: nodeKind.optional(),
    source: name.optional(),
    topic: name.optional(),
    quality: unit.optional(),
    metadata: metadata(65536).optional(),
    expiresMs: timeMs.optional(),
  }),
  run: async (memory, tenant, item) => ({
    id: await memory.add(tenant, given(item)),
  }),
});

const get = defineOperation({
  name: 'memory.get',
  summary: 'One record, whole, by its id.',
  scope: 'read',
  input: z.strictObject({ id: uuid, includeVectors }),
  async run(memory, tenant, input) {
    const [record] = await memory.store.get(tenant, [input.id]);
    if (!isSeen(memory, record)) throw notFound(`there is no record ${input.id}`);
    return { record: plainRecord(record, input.includeVectors), text: recordText(record) };
  },
});

const search = defineOperation({
  name: 'memory.search',
  summary: 'Finds by meaning over everything: what was added, requests, sessions and policies.',
  scope: 'read',
  input: z.strictObject({
    text: meaning,
    kinds: z.array(z.enum(SEEN_KINDS)).min(1).max(SEEN_KINDS.length).optional(),
    filter: conditions.optional(),
    fromMs: timeMs.optional(),
    toMs: timeMs.optional(),
    k: z.int().min(1).max(1000).default(10),
    minSimilarity: minSimilarity.optional(),
    expandHops: z.int().min(0).max(3).default(0),
    tokenBudget: z.int().min(1).max(1 << 24).optional(), // prettier-ignore
    includeVectors,
  }),
  async run(memory, tenant, { includeVectors: hasVectors, ...query }) {
    const { results, numDuplicates, context } = await memory.search(
      tenant,
      given({ ...query, withVectors: hasVectors }),
    );
    return {
      results: results.map(({ record, text: words, score, similarity, hops }) => ({
        id: record.id,
        kind: record.kind,
        text: words,
        score,
        similarity,
        hops,
        createdMs: record.createdMs,
        fields: { ...record.fields },
        ...(hasVectors ? { vector: plainRecord(record, true)['vector'] } : {}),
      })),
      numDuplicates,
      context: context === null ? null : plainReport(context),
    };
  },
});

const remove = defineOperation({
  name: 'memory.remove',
  summary: 'Forgets what was added, by ids.',
  scope: 'write',
  input: z.strictObject({ ids: z.array(uuid).min(1).max(1000) }),
  async run(memory, tenant, { ids }) {
    const unique = [...new Set(ids)];
    for (const record of await memory.store.get(tenant, unique)) {
      // Taking an entry out of the audit log would break its chain, and leave the rest unproven.
      if (record !== null && !(NODE_KINDS as readonly string[]).includes(record.kind)) {
        throw refuseInput(`${record.id} is a ${record.kind}, which cannot be removed by its id; nothing was`, 'ids');
      }
    }
    return { numRemoved: await memory.remove(tenant, unique) };
  },
});

const stats = defineOperation({
  name: 'memory.stats',
  summary: 'What a tenant has in the memory.',
  scope: 'read',
  input: z.strictObject({}),
  async run(memory, tenant) {
    const { numRecords, numEdges, numVectors, space, degraded } = await memory.stats(tenant);
    const { state: _own, ...seen } = numRecords;
    return { tenant, numRecords: seen, numEdges, numVectors, space, isDegraded: degraded !== null };
  },
});

const health = defineOperation({
  name: 'memory.health',
  summary: 'How the memory as a whole is: size, what is degraded, what the audit log dropped or lost.',
  scope: 'admin',
  input: z.strictObject({}),
  async run(memory) {
    const { numRecords, numEdges, numVectors, diskBytes, degraded, space, audit } = await memory.stats(null);
    return { numRecords, numEdges, numVectors, diskBytes, degraded, space, audit: plainReport(audit) };
  },
});

const neighbours = defineOperation({
  name: 'memory.neighbours',
  summary: 'What a record is linked with, the strongest first.',
  scope: 'read',
  input: z.strictObject({
    id: uuid,
    relations: z.array(z.enum(EDGE_RELATIONS)).min(1).max(EDGE_RELATIONS.length).optional(),
    direction: z.enum(['out', 'in', 'both']).default('both'),
    limit: z.int().min(1).max(1000).default(100),
  }),
  async run(memory, tenant, { id, ...query }) {
    const [start] = await memory.store.get(tenant, [id]);
    if (!isSeen(memory, start)) throw notFound(`there is no record ${id}`);
    const found = await memory.graph.neighbours(tenant, id, given(query));
    const records = found.length === 0 ? [] : await memory.store.get(tenant, found.map((one) => one.id)); // prettier-ignore
    return {
      neighbours: found.flatMap(({ id: other, weight, edge }, index) => {
        const record = records[index];
        if (!isSeen(memory, record)) return [];
        const { relation, confidence, updatedMs } = edge;
        const direction = edge.from === id ? 'out' : 'in';
        const words = recordText(record).slice(0, MAX_PREVIEW).toWellFormed();
        return [{ id: other, kind: record.kind, relation, direction, weight, confidence, updatedMs, text: words }];
      }),
    };
  },
});

const link = defineOperation({
  name: 'memory.link',
  summary: 'Says that two records belong together; a link that is there is replaced.',
  scope: 'write',
  input: z.strictObject({
    from: uuid,
    to: uuid,
    relation: z.enum(EDGE_RELATIONS),
    weight: z.number().min(0).max(MAX_EDGE_WEIGHT).default(1),
    confidence: unit.default(1),
  }),
  async run(memory, tenant, edge) {
    const ends = await memory.store.get(tenant, [edge.from, edge.to]);
    for (const [index, id] of [edge.from, edge.to].entries()) {
      if (!isSeen(memory, ends[index])) throw notFound(`there is no record ${id}`);
    }
    if (edge.from === edge.to) throw refuseInput(`${edge.from} cannot be linked with itself`, 'to');
    await memory.graph.link(tenant, [edge]);
    return { ...edge };
  },
});

export const memoryOperations: readonly MemoryOperation[] = [add, get, search, remove, stats, health, neighbours, link];
