import { z } from 'zod';
import type { MemoryRecord, PutRecord } from '../types.ts';
import {
  count,
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
  uuid,
} from './primitives.ts';
import { MAX_TURN_TEXT } from './text-lengths.ts';

const precision = z.enum(['f32', 'f16', 'q8', 'q4']);

export const cacheQuantization = z.discriminatedUnion('scheme', [
  z.strictObject({ scheme: z.literal('high-precision-tail'), tailLength: count, precision }),
  z.strictObject({ scheme: z.literal('quantized-store'), precision, compressionRatio: z.number().min(1).max(64) }),
  z.strictObject({
    scheme: z.literal('hybrid'),
    tailLength: count,
    tailPrecision: precision,
    storePrecision: precision,
  }),
]);

export const cacheLocation = z.discriminatedUnion('where', [
  /** Pages the pool has in memory, found by the hash of their prefix. */
  z.strictObject({ where: z.literal('memory'), prefixHash: name }),
  /** A spilled file, found by its key. */
  z.strictObject({ where: z.literal('disk'), key: name }),
]);

/** Where the keys and values of a conversation lie. */
export const kvCacheReference = z.strictObject({
  tier: z.enum(['hot', 'warm', 'cold']),
  location: cacheLocation,
  numCachedTokens: count,
  quantization: cacheQuantization,
  createdMs: timeMs,
});
export type KvCacheReference = z.infer<typeof kvCacheReference>;

export const sessionState = z
  .strictObject({
    sessionId: name,
    userId: name.nullable(),
    contextEmbedding: embedding.nullable(),
    space: space.nullable(),
    kvCache: kvCacheReference.nullable(),
    activeAdapter: name.nullable(),
    turnCount: count,
    createdMs: timeMs,
    lastActiveMs: timeMs,
    /** When it is forgotten unless used before. */
    idleEndMs: timeMs,
    /** The newest turn, to which the next is linked. */
    lastTurnId: uuid.nullable(),
    metadata: metadata(65536),
  })
  .refine(
    (session) => (session.contextEmbedding === null) === (session.space === null),
    'contextEmbedding and space come together',
  );
export type SessionState = z.infer<typeof sessionState>;

/** One exchange of a conversation. */
export const sessionTurn = z
  .strictObject({
    id: uuid,
    sessionId: name,
    /** 0 for the first. */
    turn: count,
    query: text(MAX_TURN_TEXT),
    answer: text(MAX_TURN_TEXT),
    requestId: uuid.nullable(),
    quality: z.number().min(0).max(1).nullable(),
    createdMs: timeMs,
    embedding: embedding.nullable(),
    space: space.nullable(),
  })
  .refine((turn) => (turn.embedding === null) === (turn.space === null), 'embedding and space come together');
export type SessionTurn = z.infer<typeof sessionTurn>;

export function sessionToRecord(session: SessionState, place: { id: string; tenant: string }): PutRecord {
  const {
    contextEmbedding,
    space,
    sessionId,
    userId,
    activeAdapter,
    turnCount,
    lastActiveMs,
    idleEndMs,
    createdMs,
    ...body
  } = parseWith<SessionState>(sessionState, session, 'session');
  return {
    ...place,
    kind: 'session',
    createdMs,
    // Not the store's to sweep: the turns must go in the same call.
    expiresMs: null,
    fields: { sessionId, userId, adapter: activeAdapter, turnCount, lastActiveMs, idleEndMs },
    body: toBody(body),
    vector: contextEmbedding,
    space,
  };
}

export function sessionFromRecord(record: MemoryRecord): SessionState {
  const { adapter, ...fields } = record.fields;
  return parseStored<SessionState>(
    sessionState,
    {
      ...(fromBody(record.body) as object),
      ...fields,
      activeAdapter: adapter,
      createdMs: record.createdMs,
      contextEmbedding: record.vector,
      space: record.space,
    },
    `session ${record.id}`,
  );
}

export function turnToRecord(turn: SessionTurn, tenant: string): PutRecord {
  const {
    id,
    sessionId,
    turn: index,
    quality,
    createdMs,
    embedding: vector,
    space,
    ...body
  } = parseWith<SessionTurn>(sessionTurn, turn, 'turn');
  const fields = { sessionId, turn: index, quality, source: 'session', topic: null };
  return { id, tenant, kind: 'qa-pair', createdMs, expiresMs: null, fields, body: toBody(body), vector, space };
}

export function turnFromRecord(record: MemoryRecord): SessionTurn {
  const { sessionId, turn, quality } = record.fields;
  const { vector, space, id, createdMs } = record;
  return parseStored<SessionTurn>(
    sessionTurn,
    { ...(fromBody(record.body) as object), id, sessionId, turn, quality, createdMs, embedding: vector, space },
    `turn ${record.id}`,
  );
}
