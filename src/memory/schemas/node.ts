import { z } from 'zod';
import type { MemoryEdge, MemoryRecord, PutRecord } from '../types.ts';
import { embedding, fromBody, hasSpace, metadata, name, parseStored, parseWith, space, text, timeMs, toBody, unit, uuid } from './primitives.ts';

/** The kinds that callers add directly. */
export const NODE_KINDS = ['query', 'document', 'agent-step', 'fact', 'qa-pair', 'concept', 'pattern'] as const;
export const EDGE_RELATIONS = [
  'cites',
  'follows',
  'same-topic',
  'agent-step',
  'derived',
  'contains',
  'session',
  'supersedes',
] as const;
export type EdgeRelation = (typeof EDGE_RELATIONS)[number];

/** A hundred times the weight of a new edge. */
export const MAX_EDGE_WEIGHT = 100;

export const memoryNode = z
  .strictObject({
    id: uuid,
    kind: z.enum(NODE_KINDS),
    text: text(1 << 20, 1),
    source: name.nullable(),
    topic: name.nullable(),
    quality: unit.nullable(),
    metadata: metadata(65536),
    expiresMs: timeMs.nullable(),
    embedding: embedding.nullable(),
    space: space.nullable(),
  })
  .refine(...hasSpace('embedding'));
export type MemoryNode = z.infer<typeof memoryNode>;

const memoryEdge = z.strictObject({
  from: uuid,
  to: uuid,
  relation: z.enum(EDGE_RELATIONS),
  weight: z.number().min(0).max(MAX_EDGE_WEIGHT),
  confidence: unit,
});

export function parseEdge(edge: unknown): Omit<MemoryEdge, 'updatedMs'> {
  return parseWith(memoryEdge, edge, 'edge');
}

export function nodeToRecord(node: MemoryNode, tenant: string): PutRecord {
  const checked = parseWith<MemoryNode>(memoryNode, node, 'node');
  const { id, kind, source, topic, quality, expiresMs, embedding: vector, space, ...body } = checked;
  return { id, tenant, kind, expiresMs, fields: { source, topic, quality }, body: toBody(body), vector, space };
}

export function nodeFromRecord(record: MemoryRecord): MemoryNode {
  const { source, topic, quality } = record.fields;
  const { id, kind, expiresMs, vector, space } = record;
  return parseStored<MemoryNode>(
    memoryNode,
    { ...(fromBody(record.body) as object), id, kind, source, topic, quality, expiresMs, embedding: vector, space },
    `node ${record.id}`,
  );
}
