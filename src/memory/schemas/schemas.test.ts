import { assert, float32Array, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { packFloats, unpackFloats } from '../common/float-packing.ts';
import { MEMORY_FIELDS } from '../fields.ts';
import type { JsonValue, MemoryRecord, PutRecord } from '../types.ts';
import { POLICY_FIXTURES, sessionFixture, UUID, auditFixture } from './fixtures.contract.ts';
import { memoryNode, nodeFromRecord, nodeToRecord, parseEdge, type MemoryNode } from './node.ts';
import { policyEntry, policyFromRecord, policyToRecord } from './policy.ts';
import {
  sessionFromRecord,
  sessionState,
  sessionToRecord,
  turnFromRecord,
  turnToRecord,
  type SessionTurn,
} from './session.ts';
import { parseAuditEntry, auditBody, auditEntry, auditFromRecord, auditToRecord } from './audit.ts';

/** A record as a store returns it: JSON parsed from text, the vector copied. */
function stored(put: PutRecord): MemoryRecord {
  const { ifVersion: _, ...record } = put;
  const body = JSON.parse(JSON.stringify(put.body)) as JsonValue;
  const createdMs = put.createdMs ?? 4;
  return { ...record, body, createdMs, updatedMs: 4, version: 1, vector: put.vector?.slice() ?? null };
}

const place = { id: UUID, tenant: 'acme' };
const node: MemoryNode = {
  id: UUID,
  kind: 'fact',
  text: 'Water boils at 100 °C.',
  source: 'handbook',
  topic: null,
  quality: 0.5,
  metadata: { page: 3 },
  expiresMs: 99,
  embedding: Float32Array.of(1, 2),
  space: 'test-2',
};
const turn: SessionTurn = {
  id: UUID,
  sessionId: 'chat-1',
  turn: 4,
  query: 'why?',
  answer: 'because',
  requestId: null,
  quality: null,
  createdMs: 77,
  embedding: null,
  space: null,
};

describe('[SC1] every field survives a round trip through a record', () => {
  test.each(POLICY_FIXTURES)('policy $policyType', (policy) => {
    expect(policyFromRecord(stored(policyToRecord(policy, { ...place, isCurrent: true })))).toEqual(policy);
  });
  test('session, turn, node', () => {
    expect(sessionFromRecord(stored(sessionToRecord(sessionFixture(), place)))).toEqual(sessionFixture());
    expect(turnFromRecord(stored(turnToRecord(turn, 'acme')))).toEqual(turn);
    expect(nodeFromRecord(stored(nodeToRecord(node, 'acme')))).toEqual(node);
  });
  test('session of before its cache reference was removed', () => {
    const record = stored(sessionToRecord(sessionFixture(), place));
    const old = { ...record, body: { ...(record.body as object), kvCache: null } };
    expect(sessionFromRecord(old)).toEqual(sessionFixture());
  });
  test('audit entry of before there were all parts of its time', () => {
    const entry = auditFixture();
    const { embeddingMs, retrievalMs, routingMs, generationMs, totalMs, ttftMs } = entry.latency;
    const old = { ...entry, latency: { embeddingMs, retrievalMs, routingMs, generationMs, totalMs, ttftMs } };
    const none = { waitMs: null, policyMs: null, queueMs: null, promptMs: null, writeMs: null };
    expect(auditEntry.parse(old).latency).toEqual({ ...old.latency, ...none });
  });
  test('audit entry', () => {
    const entry = auditFixture({ error: { code: 'overloaded', message: 'full', isRetryable: true } });
    const link = { sequence: 1, runId: 'r', numDroppedBefore: 0, previousHash: 'a', hash: 'b', vectorHash: 'c' };
    const linked = { id: UUID, createdMs: 8, entry, link };
    expect(auditFromRecord(stored(auditToRecord(linked, auditBody(entry), 'acme')))).toEqual(linked);
  });
  test('audit entry of before the time of attention was removed', () => {
    const entry = auditFixture();
    const link = { sequence: 1, runId: 'r', numDroppedBefore: 0, previousHash: 'a', hash: 'b', vectorHash: 'c' };
    const linked = { id: UUID, createdMs: 8, entry, link };
    const body = auditBody({ ...entry, latency: { ...entry.latency, attentionMs: 0 } as never });
    expect(auditFromRecord(stored(auditToRecord(linked, body, 'acme')))).toEqual(linked);
  });
  test('returns floats of any bits unchanged', () => {
    assert(
      property(float32Array(), (values) => {
        expect([...unpackFloats(packFloats(values))]).toEqual([...values]);
      }),
    );
  });
});

test('[SC2] records carry only fields that are declared for their kind', () => {
  const puts = [
    ...POLICY_FIXTURES.map((policy) => policyToRecord(policy, { ...place, isCurrent: true })),
    sessionToRecord(sessionFixture(), place),
    turnToRecord(turn, 'acme'),
    nodeToRecord(node, 'acme'),
  ];
  for (const { kind, fields } of puts) {
    for (const field of Object.keys(fields)) expect(Object.keys(MEMORY_FIELDS[kind])).toContain(field);
  }
});

describe('[SC3] refuses invalid values', () => {
  const router = POLICY_FIXTURES[0]!;
  const cases: readonly [string, { safeParse(value: unknown): { success: boolean } }, unknown][] = [
    ['unknown key', auditEntry, { ...auditFixture(), extra: 1 }],
    [
      'unknown key below',
      auditEntry,
      auditFixture({ latency: { ...auditFixture().latency, extraMs: 1 } as never }),
    ],
    ['NaN quality', auditEntry, auditFixture({ quality: NaN })],
    ['quality above 1', auditEntry, auditFixture({ quality: 1.1 })],
    ['infinite latency', auditEntry, auditFixture({ latency: { ...auditFixture().latency, totalMs: Infinity } })],
    ['lone surrogate', auditEntry, auditFixture({ query: 'a\ud800b' })],
    ['too long', auditEntry, auditFixture({ query: 'x'.repeat(65537) })],
    ['NaN in a vector', auditEntry, auditFixture({ queryEmbedding: Float32Array.of(NaN, 1) })],
    ['vector without space', auditEntry, auditFixture({ space: null })],
    ['seconds with a fraction', sessionState, sessionFixture({ lastActiveMs: 1.5 })],
    ['negative time', sessionState, sessionFixture({ lastActiveMs: -1 })],
    ['$ key in metadata', sessionState, sessionFixture({ metadata: { a: { $f32: 'AAAA' } } })],
    ['__proto__ in metadata', sessionState, sessionFixture({ metadata: JSON.parse('{"__proto__":1}') as never })],
    ['too much metadata', sessionState, sessionFixture({ metadata: { a: 'x'.repeat(65536) } })],
    ['a date in metadata', sessionState, sessionFixture({ metadata: { a: new Date(0) } as never })],
    ['parameters of another type', policyEntry, { ...router, policyType: 'ewc' }],
    ['fisher of a router', policyEntry, { ...router, fisherDiagonal: Float32Array.of(1) }],
    ['router policy of a version below 0', policyEntry, { ...router, parameters: { ...router.parameters, version: -1 } }],
    ['node of kind session', memoryNode, { ...node, kind: 'session' }],
  ];
  test.each(cases)('%s', (_, schema, value) => expect(schema.safeParse(value).success).toBe(false));
  test('of millions of values only as many are looked at as could be taken', () => {
    let isLastRead = false;
    const many: Record<string, unknown> = Object.fromEntries(Array.from({ length: 70_000 }, (_, i) => [`k${i}`, 0]));
    Object.defineProperty(many, 'last', { enumerable: true, get: () => (isLastRead = true) });
    expect(memoryNode.safeParse({ ...node, metadata: many }).success).toBe(false);
    expect(isLastRead).toBe(false);
  });
  test('the path is in the message', () => {
    expect(() => parseAuditEntry(auditFixture({ quality: 2 }))).toThrow(/audit entry: "quality"/);
  });
  test('edges of unknown relation or weight', () => {
    const edge = { from: UUID, to: UUID, relation: 'cites', weight: 1, confidence: 1 };
    expect(parseEdge(edge)).toEqual(edge);
    expect(() => parseEdge({ ...edge, relation: 'likes' })).toThrow(/relation/);
    expect(() => parseEdge({ ...edge, weight: NaN })).toThrow(/weight/);
  });
});

test('[SC4] a stored body that does not fit is an io error, not the caller’s', () => {
  const record = { ...stored(sessionToRecord(sessionFixture(), place)), body: { lastTurnId: 3 } };
  expect(() => sessionFromRecord(record)).toThrow(expect.objectContaining({ code: 'io' }));
});
