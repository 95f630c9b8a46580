import { z } from 'zod';
import type { MemoryRecord, PutRecord } from '../types.ts';
import { count, embedding, fromBody, hasSpace, metadata, name, parseStored, parseWith, space, text, timeMs, toBody, uuid, withoutKeys } from './primitives.ts';
import { MAX_TURN_TEXT } from './text-lengths.ts';

export const sessionState = z
  .strictObject({
    sessionId: name,
    userId: name.nullable(),
    contextEmbedding: embedding.nullable(),
    space: space.nullable(),
    /** The first adapter of its last request; null: none. */
    activeAdapter: name.nullable(),
    turnCount: count,
    createdMs: timeMs,
    lastActiveMs: timeMs,
    /** When it expires unless it is used before. */
    idleEndMs: timeMs,
    /** The newest turn; the next is linked to it. */
    lastTurnId: uuid.nullable(),
    metadata: metadata(65536),
  })
  .refine(...hasSpace('contextEmbedding'));
export type SessionState = z.infer<typeof sessionState>;

/** One exchange of a conversation. */
const sessionTurn = z
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
  .refine(...hasSpace('embedding'));
export type SessionTurn = z.infer<typeof sessionTurn>;

/** Written by older versions only. */
const REMOVED_KEYS = ['kvCache'];

export function sessionToRecord(session: SessionState, place: { id: string; tenant: string }): PutRecord {
  const { contextEmbedding: vector, space, createdMs, ...rest } = parseWith<SessionState>(sessionState, session, 'session');
  const { sessionId, userId, activeAdapter: adapter, turnCount, lastActiveMs, idleEndMs, ...body } = rest;
  const fields = { sessionId, userId, adapter, turnCount, lastActiveMs, idleEndMs };
  // The store must not sweep it: its turns are deleted in the same call.
  return { ...place, kind: 'session', createdMs, expiresMs: null, fields, body: toBody(body), vector, space };
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
  const { id, createdMs, embedding: vector, space, ...rest } = parseWith<SessionTurn>(sessionTurn, turn, 'turn');
  const { sessionId, turn: index, quality, ...body } = rest;
  const { requestId } = rest;
  const fields = { sessionId, requestId, turn: index, quality, source: 'session', topic: null };
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
