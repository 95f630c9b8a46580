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
  withoutKeys,
} from './primitives.ts';
import { MAX_TURN_TEXT } from './text-lengths.ts';

export const sessionState = z
  .strictObject({
    sessionId: name,
    userId: name.nullable(),
    contextEmbedding: embedding.nullable(),
    space: space.nullable(),
    /** Named by its last request, the first of several; null: none was. */
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

/** Written by older versions; nothing reads it any more. */
const REMOVED_KEYS = ['kvCache'];

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
      ...withoutKeys(fromBody(record.body), REMOVED_KEYS),
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
