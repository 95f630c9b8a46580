import { z } from 'zod';
import { AUDIT_KIND, type JsonValue, type MemoryRecord, type PutRecord } from '../types.ts';
import { count, durationMs, embedding, fromBody, hasSpace, name, parseStored, parseWith, space, text, timeMs, toBody, unit, uuid, withoutKeys } from './primitives.ts';
import { MAX_AUDIT_TEXT } from './text-lengths.ts';

export const MAX_CONTEXT_DOCS = 256;
/** Erased entries that one entry names. */
export const MAX_ERASED = 10_000;
/** The model of entries that record an erasure. */
export const ERASURE_MODEL = 'ruvllm';
/** The models of entries that record a tool call begin with this, followed by the name of the MCP server. */
export const TOOL_MODEL_PREFIX = 'tool:';

const routingDecision = z.strictObject({
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

/** Null: the step did not happen, or the entry is older than the figure. */
const stepMs = durationMs.nullable().default(null);

/** The time of a request by step, in order. */
const latencyBreakdown = z.strictObject({
  /** Waiting for the memory's thread. */
  waitMs: stepMs,
  embeddingMs: durationMs,
  /** Searching for texts for the prompt. */
  retrievalMs: durationMs,
  /** Reading the tenant's policies, which include the router. */
  policyMs: stepMs,
  /** Choosing the model. */
  routingMs: durationMs,
  /** Engine queue and prompt processing; both are part of `generationMs`. */
  queueMs: stepMs,
  promptMs: stepMs,
  /** From the choice of the model to the end of the answer. */
  generationMs: durationMs,
  totalMs: durationMs,
  /** Time to first token; null without one. */
  ttftMs: durationMs.nullable(),
  /** From the end of the answer until this entry was enqueued. */
  writeMs: stepMs,
});
export type LatencyBreakdown = z.infer<typeof latencyBreakdown>;

/** A tool call of the request with the same id; the entry's query has its arguments and the response its result. */
const toolCall = z.strictObject({
  /** Null: a function of the program. */
  server: name.nullable(),
  name,
  /** UTF-8 bytes of the whole result. */
  numBytes: count,
  outcome: z.enum(['done', 'cut', 'failed', 'refused']),
});

/** Each from 0 (bad) to 1; a missing part did not apply or was not measured. */
const qualityParts = z.strictObject({
  /** 1: in the requested format, and not empty. */
  schema: unit.optional(),
  /** Geometric mean of the probabilities of the answer's tokens. */
  likelihood: unit.optional(),
  /** Cosine of the embeddings of question and answer. */
  coherence: unit.optional(),
  /** Different words per word. */
  diversity: unit.optional(),
  /** 1: no phrase is repeated. */
  repetition: unit.optional(),
  /** Share of the answer that near patterns of the reasoning bank do not contain. */
  uniqueness: unit.optional(),
  /** Agreement with a second, short sample. */
  consistency: unit.optional(),
  /** Agreement with the answer of a stronger model. */
  peer: unit.optional(),
});
export type QualityParts = z.infer<typeof qualityParts>;

/** A quality that no person gave. */
export const qualityEstimate = z.strictObject({ quality: unit, parts: qualityParts });
export type QualityEstimate = z.infer<typeof qualityEstimate>;

/** The attempts of a request with reflection. */
const reflection = z.strictObject({
  ending: name,
  /** Index of the attempt that is the response. */
  chosen: z.int().min(0).max(3),
  /** Why the response still cannot be used; null: it can. */
  error: text(512).nullable(),
  attempts: z
    .array(z.strictObject({ error: text(512).nullable(), confidence: unit.nullable(), promptTokens: count, completionTokens: count }))
    .max(4),
});

const errorInfo = z.strictObject({ code: name, message: text(4096), isRetryable: z.boolean() });

/** A request and its outcome. */
export const auditEntry = z
  .strictObject({
    requestId: uuid,
    sessionId: name.nullable(),
    /** Missing in older entries. */
    userId: name.nullable().optional(),
    /** When the request ended. */
    timestampMs: timeMs,
    model: name,
    routing: routingDecision.nullable(),
    quality: unit.nullable(),
    /** Missing in older entries and in those of failed requests. */
    estimate: qualityEstimate.optional(),
    reflection: reflection.optional(),
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
    /** Names of the parts that were repaired before writing. */
    repairs: z.array(text(64)).max(16),
    /** Sequences of the entries whose content was erased when this one was written: only they may be tombstones. */
    erased: z.array(z.int().min(1)).max(MAX_ERASED).optional(),
    /** Only in entries of tool calls. */
    tool: toolCall.optional(),
  })
  .refine(...hasSpace('queryEmbedding'));
export type AuditEntry = z.infer<typeof auditEntry>;
/** The caller's part of an entry. */
export type AuditInput = Omit<AuditEntry, 'numCut' | 'repairs' | 'latency'> & {
  readonly latency: z.input<typeof latencyBreakdown>;
};

/** The place of an entry in its chain. */
export interface AuditLink {
  readonly sequence: number;
  /** The run of the log that wrote it. */
  readonly runId: string;
  /** Entries of this run dropped between the previous one and this one. */
  readonly numDroppedBefore: number;
  readonly previousHash: string;
  readonly hash: string;
  /** SHA-256 of the query's embedding, so that the chain can be verified without vectors; null without one. */
  readonly vectorHash: string | null;
}

export interface LinkedEntry {
  readonly id: string;
  /** Never before the previous entry, even if the clock went back. */
  readonly createdMs: number;
  readonly entry: AuditEntry;
  readonly link: AuditLink;
}

export function parseAuditEntry(entry: unknown): AuditEntry {
  return parseWith<AuditEntry>(auditEntry, entry, 'audit entry');
}

/** An entry without its vector: hashed by the chain and stored in archives. */
export function auditBody(entry: AuditEntry): JsonValue {
  const { queryEmbedding: _vector, ...rest } = entry;
  return toBody(rest);
}

/** A stored body without latencies that only older versions wrote. */
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
    // A sweep would tear holes into the chain; retention cuts it in one place.
    expiresMs: null,
    fields: {
      sequence: link.sequence,
      requestId: entry.requestId,
      sessionId: entry.sessionId,
      userId: entry.userId ?? null,
      model: entry.model,
      quality: entry.quality,
      estimate: entry.estimate?.quality ?? null,
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

/** The content of an entry that was erased; its link stays, so that the chain can still be verified. */
const TOMBSTONE = { isErased: true } as const;

export const isTombstone = (body: JsonValue): boolean => (body as Partial<typeof TOMBSTONE> | null)?.isErased === true;

/** The record without its content. */
export function tombstoneOf({ id, tenant, createdMs }: MemoryRecord, link: AuditLink): PutRecord {
  const body = { entry: TOMBSTONE, link: { ...link } };
  return { id, tenant, kind: AUDIT_KIND, createdMs, expiresMs: null, fields: { sequence: link.sequence }, body, vector: null, space: null }; // prettier-ignore
}

/** The archived entry without its content. */
export const toTombstone = <T extends { readonly body: JsonValue }>(entry: T): T => ({ ...entry, body: TOMBSTONE });

const storedLink = z.strictObject({
  sequence: z.int().min(1),
  runId: name,
  numDroppedBefore: count,
  previousHash: name,
  hash: name,
  vectorHash: name.nullable(),
});

/** The stored parts of an entry, without checks of their content: `verify` must see them as they are. */
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
