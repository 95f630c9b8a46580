import { z } from 'zod';
import { AUDIT_KIND, type JsonValue, type MemoryRecord, type PutRecord } from '../types.ts';
import {
  count,
  durationMs,
  embedding,
  fromBody,
  name,
  parseStored,
  parseWith,
  space,
  text,
  timeMs,
  toBody,
  unit,
  uuid,
  withoutKeys,
} from './primitives.ts';
import { MAX_AUDIT_TEXT } from './text-lengths.ts';

export const MAX_CONTEXT_DOCS = 256;

export const routingDecision = z.strictObject({
  model: name,
  /** The smallest of 256, 512, 1024 … tokens that holds the prompt and its answer. */
  contextSize: count,
  temperature: z.number().min(0).max(10),
  topP: unit,
  /** Who chose temperature and top-p; entries of older versions do not say. */
  samplingSource: z.enum(['request', 'learned', 'default']).optional(),
  confidence: unit,
  /** Of at most four candidates. */
  modelProbs: z.array(unit).max(4),
});
export type RoutingDecision = z.infer<typeof routingDecision>;

/** Null: there was none of it, or the entry is older than the figure. */
const stepMs = durationMs.nullable().default(null);

/** Where the time of a request went, in the order in which it went there. */
export const latencyBreakdown = z.strictObject({
  /** For the memory's thread to have time for it. */
  waitMs: stepMs,
  embeddingMs: durationMs,
  /** Looking for what goes into the prompt. */
  retrievalMs: durationMs,
  /** For what was learned for the tenant, of which the router is chosen. */
  policyMs: stepMs,
  /** Choosing who answers, with the patterns that have a say in it. */
  routingMs: durationMs,
  /** In the queue of the engine, and reading the prompt; both are part of the generation. */
  queueMs: stepMs,
  promptMs: stepMs,
  /** From the choice of who answers to the end of the answer. */
  generationMs: durationMs,
  totalMs: durationMs,
  /** Until the first token; null where there was none. */
  ttftMs: durationMs.nullable(),
  /** From the end of the answer until this entry was with the log. */
  writeMs: stepMs,
});
export type LatencyBreakdown = z.infer<typeof latencyBreakdown>;

export const errorInfo = z.strictObject({ code: name, message: text(4096), isRetryable: z.boolean() });
export type ErrorInfo = z.infer<typeof errorInfo>;

/** What one request was, and what became of it. */
export const auditEntry = z
  .strictObject({
    requestId: uuid,
    sessionId: name.nullable(),
    /** When the request ended, by the clock of then. */
    timestampMs: timeMs,
    model: name,
    routing: routingDecision.nullable(),
    quality: unit.nullable(),
    latency: latencyBreakdown,
    contextDocIds: z.array(uuid).max(MAX_CONTEXT_DOCS),
    query: text(MAX_AUDIT_TEXT),
    response: text(MAX_AUDIT_TEXT),
    /** Characters cut off query and response. */
    numCut: count,
    numPromptTokens: count,
    numOutputTokens: count,
    queryEmbedding: embedding.nullable(),
    responseEmbedding: embedding.nullable(),
    space: space.nullable(),
    error: errorInfo.nullable(),
    /** What the log had to change of what it was given, by name. */
    repairs: z.array(text(64)).max(16),
  })
  .refine(
    (entry) => (entry.queryEmbedding === null) === (entry.space === null),
    'queryEmbedding and space come together',
  );
export type AuditEntry = z.infer<typeof auditEntry>;
/** What a caller hands to the log, which fills in the rest. */
export type AuditInput = Omit<AuditEntry, 'numCut' | 'repairs' | 'latency'> & {
  readonly latency: z.input<typeof latencyBreakdown>;
};

/** The place of an entry in its chain. */
export interface AuditLink {
  readonly sequence: number;
  /** Which run of the log wrote it. */
  readonly runId: string;
  /** Entries of this run that were given up between the one before and this one. */
  readonly numDroppedBefore: number;
  readonly previousHash: string;
  readonly hash: string;
  /** SHA-256 of the query's embedding, so that the chain holds without the vectors; null without one. */
  readonly vectorHash: string | null;
}

export interface LinkedEntry {
  readonly id: string;
  /** Never before the entry before it, even where the clock was. */
  readonly createdMs: number;
  readonly entry: AuditEntry;
  readonly link: AuditLink;
}

export function parseAuditEntry(entry: unknown): AuditEntry {
  return parseWith<AuditEntry>(auditEntry, entry, 'audit entry');
}

/** Everything of an entry but the vector: what the chain's hash is taken of, and what an archive holds. */
export function auditBody(entry: AuditEntry): JsonValue {
  const { queryEmbedding: _vector, ...rest } = entry;
  return toBody(rest);
}

/** A stored body; parts of its time that older versions wrote and nothing reads any more are left out. */
function entryOf(body: JsonValue): object {
  const entry = fromBody(body) as { readonly latency?: unknown };
  return { ...entry, latency: withoutKeys(entry.latency, ['attentionMs']) };
}

export function auditFromBody(body: JsonValue, vector: Float32Array | null): AuditEntry {
  return parseStored<AuditEntry>(
    auditEntry,
    { ...entryOf(body), queryEmbedding: vector },
    'audit entry',
  );
}

export function auditToRecord(linked: LinkedEntry, body: JsonValue, tenant: string): PutRecord {
  const { entry, link } = linked;
  return {
    id: linked.id,
    tenant,
    kind: AUDIT_KIND,
    createdMs: linked.createdMs,
    // Retention cuts the chain at one place; a sweep would tear holes into it.
    expiresMs: null,
    fields: {
      sequence: link.sequence,
      requestId: entry.requestId,
      sessionId: entry.sessionId,
      model: entry.model,
      quality: entry.quality,
      totalMs: entry.latency.totalMs,
      ttftMs: entry.latency.ttftMs,
      hasError: entry.error !== null,
      errorCode: entry.error?.code ?? null,
    },
    body: { entry: body, link: { ...link } },
    vector: entry.queryEmbedding,
    space: entry.space,
  };
}

const storedLink = z.strictObject({
  sequence: z.int().min(1),
  runId: name,
  numDroppedBefore: count,
  previousHash: name,
  hash: name,
  vectorHash: name.nullable(),
});

/** An entry's parts as they lie in the store, unchecked but for their shape: a verifier must see what is there. */
export function linkFromRecord(record: MemoryRecord): { body: JsonValue; link: AuditLink } {
  const { entry, link } = (record.body ?? {}) as { entry?: JsonValue; link?: JsonValue };
  return { body: entry ?? null, link: parseStored<AuditLink>(storedLink, link, `link of audit entry ${record.id}`) };
}

export function auditFromRecord(record: MemoryRecord): LinkedEntry {
  const { body, link } = linkFromRecord(record);
  const bodySpace = (body as { space?: JsonValue } | null)?.space ?? null;
  const whole = { ...entryOf(body), queryEmbedding: bodySpace === null ? null : record.vector };
  const entry = parseStored<AuditEntry>(auditEntry, whole, `audit entry ${record.id}`);
  return { id: record.id, createdMs: record.createdMs, entry, link };
}
