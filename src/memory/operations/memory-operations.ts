import { z } from 'zod';
import { isAgentFact } from '../agents/fact-record.ts';
import { withoutUndefined } from '../common/store-access.ts';
import { chunkOf, documentOf } from '../documents/document-records.ts';
import { EDGE_RELATIONS, MAX_EDGE_WEIGHT, NODE_KINDS } from '../schemas/node.ts';
import { metadata, name, text, timeMs, unit, uuid } from '../schemas/primitives.ts';
import { toPosition } from '../search/pack.ts';
import { recordText } from '../search/record-text.ts';
import type { MemoryRecord } from '../types.ts';
import {
  conditions,
  getVisible,
  includeVectors,
  isVisible,
  meaning,
  minSimilarity,
  nodeKind,
  previewOf,
  relations,
  visibleKinds,
} from './inputs.ts';
import { defineOperation, refuseInput, type MemoryOperation } from './operation.ts';
import { plainRecord, plainReport } from './plain.ts';
import { messageOf } from '../../core/errors.ts';

/** Of a text in a list; `memory.get` returns all of it. */
const MAX_PREVIEW = 4096;

/** The name and place of a chunk of a document. */
function positionOf(record: MemoryRecord): { readonly position?: object } {
  const chunk = chunkOf(record);
  return chunk === null ? {} : { position: toPosition(chunk) };
}

const add = defineOperation({
  name: 'memory.add',
  summary: 'Adds a text, which can then be found by words and meaning.',
  input: z.strictObject({
    text: text(1 << 20, 1),
    kind: nodeKind.optional(),
    source: name.optional(),
    topic: name.optional(),
    quality: unit.optional(),
    metadata: metadata(65536).optional(),
    expiresMs: timeMs.optional(),
  }),
  run: async (memory, tenant, item) => ({ id: await memory.add(tenant, withoutUndefined(item)) }),
});

const get = defineOperation({
  name: 'memory.get',
  summary: 'Returns one record by id.',
  input: z.strictObject({ id: uuid, includeVectors }),
  async run(memory, tenant, input) {
    const record = await getVisible(memory, tenant, input.id);
    return { record: plainRecord(record, input.includeVectors), text: recordText(record) };
  },
});

const search = defineOperation({
  name: 'memory.search',
  summary:
    'Searches by words and meaning over added texts, sessions and policies, and over answers that were rated or corrected.',
  input: z.strictObject({
    text: meaning,
    turns: z.array(meaning).max(256).optional(),
    kinds: visibleKinds.optional(),
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
      withoutUndefined({ ...query, withVectors: hasVectors }),
    );
    return {
      results: results.map(({ record, text: words, score, similarity, lexical, hops }) => ({
        id: record.id,
        kind: record.kind,
        text: words,
        score,
        similarity,
        lexical,
        hops,
        createdMs: record.createdMs,
        fields: { ...record.fields },
        ...positionOf(record),
        ...(hasVectors ? { vector: plainRecord(record, true)['vector'] } : {}),
      })),
      numDuplicates,
      context: context === null ? null : plainReport(context),
    };
  },
});

const remove = defineOperation({
  name: 'memory.remove',
  summary: 'Removes added texts by id.',
  input: z.strictObject({ ids: z.array(uuid).min(1).max(1000) }),
  async run(memory, tenant, { ids }) {
    const unique = [...new Set(ids)];
    const records = await memory.store.get(tenant, unique);
    for (const record of records) {
      // Removing an audit entry would break the chain.
      if (record !== null && !(NODE_KINDS as readonly string[]).includes(record.kind)) {
        throw refuseInput(
          `${record.id} has the kind ${record.kind}, which cannot be removed by id; nothing was removed`,
          'ids',
        );
      }
    }
    // A document without its chunks could not be removed any more.
    const documents = records.flatMap((record) => (record !== null && documentOf(record) !== null ? [record.id] : []));
    for (const id of documents) await memory.documents.remove(tenant, id);
    // The values that a fact replaced go with it.
    const facts = records.flatMap((record) => (record !== null && isAgentFact(record) ? [record.id] : []));
    const numFacts = await memory.agents.facts.forget(tenant, facts);
    const others = unique.filter((id) => !documents.includes(id) && !facts.includes(id));
    return {
      numRemoved: documents.length + numFacts + (others.length === 0 ? 0 : await memory.remove(tenant, others)),
    };
  },
});

const stats = defineOperation({
  name: 'memory.stats',
  summary: 'Counts the records of a tenant.',
  input: z.strictObject({}),
  async run(memory, tenant) {
    const { numRecords, numEdges, numVectors, space, embedder, reindex, degraded } = await memory.stats(tenant);
    const { state: _own, ...seen } = numRecords;
    return { tenant, numRecords: seen, numEdges, numVectors, space, embedder, reindex, isDegraded: degraded !== null };
  },
});

const health = defineOperation({
  name: 'memory.health',
  summary: 'Size and state of the whole memory, and entries that the audit log dropped or lost.',
  input: z.strictObject({}),
  async run(memory) {
    const { numRecords, numEdges, numVectors, diskBytes, degraded, space, embedder, audit } = await memory.stats(null);
    return { numRecords, numEdges, numVectors, diskBytes, degraded, space, embedder, audit: plainReport(audit) };
  },
});

const neighbours = defineOperation({
  name: 'memory.neighbours',
  summary: 'The linked records of one, the strongest link first.',
  input: z.strictObject({
    id: uuid,
    relations: relations.optional(),
    direction: z.enum(['out', 'in', 'both']).default('both'),
    limit: z.int().min(1).max(1000).default(100),
  }),
  async run(memory, tenant, { id, ...query }) {
    await getVisible(memory, tenant, id);
    const found = await memory.graph.neighbours(tenant, id, withoutUndefined(query));
    const records = found.length === 0 ? [] : await memory.store.get(tenant, found.map((one) => one.id)); // prettier-ignore
    return {
      neighbours: found.flatMap(({ id: other, weight, edge }, index) => {
        const record = records[index];
        if (!isVisible(memory, record)) return [];
        const { relation, confidence, updatedMs } = edge;
        const direction = edge.from === id ? 'out' : 'in';
        const words = previewOf(recordText(record), MAX_PREVIEW);
        return [{ id: other, kind: record.kind, relation, direction, weight, confidence, updatedMs, text: words }];
      }),
    };
  },
});

const link = defineOperation({
  name: 'memory.link',
  summary: 'Links two records; replaces an existing link.',
  input: z.strictObject({
    from: uuid,
    to: uuid,
    relation: z.enum(EDGE_RELATIONS),
    weight: z.number().min(0).max(MAX_EDGE_WEIGHT).default(1),
    confidence: unit.default(1),
  }),
  async run(memory, tenant, edge) {
    for (const id of [edge.from, edge.to]) await getVisible(memory, tenant, id);
    if (edge.from === edge.to) throw refuseInput(`${edge.from} cannot be linked with itself`, 'to');
    await memory.graph.link(tenant, [edge]);
    return { ...edge };
  },
});

const backup = defineOperation({
  name: 'memory.backup',
  summary: 'Writes a verified backup of the memory and the API keys into the backup folder of the server.',
  input: z.strictObject({}),
  run: async (memory) => ({ ...(await memory.backup()) }),
});

const check = defineOperation({
  name: 'memory.check',
  summary: 'Reads all data of the memory and says what is damaged or missing.',
  input: z.strictObject({}),
  async run(memory) {
    const { degraded } = await memory.stats(null);
    const damage = await memory.store.checkIntegrity().then(() => null, messageOf);
    const problems = [degraded, damage].filter((problem) => problem !== null);
    return { isIntact: problems.length === 0, problems };
  },
});

export const memoryOperations: readonly MemoryOperation[] = [add, get, search, remove, stats, health, backup, check, neighbours, link]; // prettier-ignore
