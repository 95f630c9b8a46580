import { z } from 'zod';
import type { MemoryEdge, MemoryRecord, PutRecord } from '../types.ts';
import {
  embedding,
  fromBody,
  metadata,
  name,
  parseStored,
  parseWith,
  space,
  text,
  timeMs,
  toBody,
  unit,
  uuid,
} from './primitives.ts';

/** The kinds a caller may add; sessions, policies and audit entries come by their own doors. */
export const NODE_KINDS = ['query', 'document', 'agent-step', 'fact', 'qa-pair', 'concept', 'pattern'] as const;
export const EDGE_RELATIONS = [
  'cites',
  'follows',
  'same-topic',
  'agent-step',
  'derived',
  'contains',
  'session',
] as const;
export type EdgeRelation = (typeof EDGE_RELATIONS)[number];

/** Heaviest edge: a hundred times a new one. */
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
  .refine((node) => (node.embedding === null) === (node.space === null), 'embedding and space come together');
export type MemoryNode = z.infer<typeof memoryNode>;

export const memoryEdge = z.strictObject({
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
  const {
    id,
    kind,
    source,
    topic,
    quality,
    expiresMs,
    embedding: vector,
    space,
    ...body
  } = parseWith<MemoryNode>(memoryNode, node, 'node');
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
