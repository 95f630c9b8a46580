import { RuvLLMError } from '../../core/errors.ts';
import { retryConflict } from '../common/retry-conflict.ts';
import type { MemoryServices } from '../common/services.ts';
import { readPages } from '../common/store-access.ts';
import {
  ERASURE_MODEL,
  isTombstone,
  linkFromRecord,
  MAX_ERASED,
  tombstoneOf,
  toTombstone,
  type AuditEntry,
} from '../schemas/audit.ts';
import { AUDIT_KIND, type FieldCondition, type JsonValue, type MemoryRecord, type MemoryStore } from '../types.ts';
import { manifestPut, readManifests, readSegment, writeSegment, type AuditArchive } from './archive.ts';
import { entryBytes } from './chain.ts';
import { headPut, readHead } from './head.ts';
import type { AuditRecorder } from './recorder.ts';

/** Whose entries are erased: those of a user, and of these requests. */
export interface EntryOwner {
  readonly userId: string | null;
  readonly requestIds: ReadonlySet<string>;
}

export interface OwnedEntry extends Pick<AuditEntry, 'requestId' | 'sessionId'> {
  readonly sequence: number;
  readonly isArchived: boolean;
}

export interface EraseContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly archive: AuditArchive | null;
  readonly recorder: Pick<AuditRecorder, 'enqueue' | 'flush'>;
}

/** Values in one condition, and edges in one call. */
const CHUNK = 500;
const MAX_EDGES = 10_000;

const isOwned = (body: JsonValue, { userId, requestIds }: EntryOwner): boolean => {
  if (isTombstone(body)) return false;
  const entry = body as Partial<Pick<AuditEntry, 'requestId' | 'userId'>> | null;
  return requestIds.has(entry?.requestId ?? '') || (userId !== null && entry?.userId === userId);
};

/** The entries of an owner that still have their content, in the store and in the archive. */
export async function* ownedEntries(
  { store, services, archive }: Omit<EraseContext, 'recorder'>,
  tenant: string,
  owner: EntryOwner,
): AsyncGenerator<OwnedEntry> {
  for (const { manifest } of archive === null ? [] : await readManifests(store, tenant)) {
    for (const { body, link } of await readSegment(archive!, services.sha256, tenant, manifest)) {
      if (!isOwned(body, owner)) continue;
      const { requestId, sessionId } = body as unknown as AuditEntry;
      yield { sequence: link.sequence, requestId, sessionId, isArchived: true };
    }
  }
  for await (const record of ownedRecords(store, tenant, owner)) {
    const { sequence, requestId, sessionId } = record.fields;
    yield {
      sequence: Number(sequence),
      requestId: String(requestId),
      sessionId: sessionId == null ? null : String(sessionId),
      isArchived: false,
    };
  }
}

async function* ownedRecords(store: MemoryStore, tenant: string, owner: EntryOwner): AsyncGenerator<MemoryRecord> {
  const ids = [...owner.requestIds];
  const conditions: FieldCondition[] = [];
  if (owner.userId !== null) conditions.push({ field: 'userId', is: '=', value: owner.userId });
  for (let from = 0; from < ids.length; from += CHUNK) {
    conditions.push({ field: 'requestId', is: 'in', values: ids.slice(from, from + CHUNK) });
  }
  const seen = new Set<string>();
  for (const condition of conditions) {
    const query = { kinds: [AUDIT_KIND], filter: { fields: [condition] }, order: 'oldest' } as const;
    for await (const page of readPages(store, tenant, query, CHUNK)) {
      for (const record of page) {
        if (!seen.has(record.id)) yield record;
        seen.add(record.id);
      }
    }
  }
}

/** Replaces the content of an owner's entries by tombstones; an entry that names them keeps the chain verifiable. */
export async function eraseEntries(context: EraseContext, tenant: string, owner: EntryOwner): Promise<void> {
  await context.recorder.flush(); // queued entries would be written with their content
  const sequences: number[] = [];
  for await (const { sequence } of ownedEntries(context, tenant, owner)) sequences.push(sequence);
  if (sequences.length === 0) return;
  for (let from = 0; from < sequences.length; from += MAX_ERASED) {
    await recordErasure(context, tenant, sequences.slice(from, from + MAX_ERASED));
  }
  // The archive last: retention may have moved live entries there meanwhile.
  await eraseLive(context, tenant, owner);
  await eraseArchived(context, tenant, owner);
}

async function recordErasure({ recorder, services }: EraseContext, tenant: string, erased: number[]): Promise<void> {
  const isTaken = await recorder.enqueue(tenant, {
    requestId: services.newId(),
    sessionId: null,
    timestampMs: Math.floor(services.now()),
    model: ERASURE_MODEL,
    routing: null,
    quality: null,
    latency: { embeddingMs: 0, retrievalMs: 0, routingMs: 0, generationMs: 0, totalMs: 0, ttftMs: null },
    contextDocIds: [],
    query: '',
    response: `erased the content of ${erased.length} entries`,
    numPromptTokens: 0,
    numOutputTokens: 0,
    queryEmbedding: null,
    responseEmbedding: null,
    space: null,
    error: null,
    erased,
  });
  if (!isTaken) throw new RuvLLMError('overloaded', 'the audit queue is full', { isRetryable: true });
  await recorder.flush();
}

async function eraseLive({ store, services }: EraseContext, tenant: string, owner: EntryOwner): Promise<void> {
  const erase = (records: readonly MemoryRecord[]): Promise<void> =>
    retryConflict(async (numTries) => {
      const ids = records.map(({ id }) => id);
      const present = numTries === 0 ? records : (await store.get(tenant, ids)).filter((record) => record !== null);
      const { head, version } = await readHead(store, services.sha256, tenant);
      let numBytes = 0;
      const puts = present.map((record) => {
        const { body, link } = linkFromRecord(record);
        const tombstone = tombstoneOf(record, link);
        numBytes +=
          entryBytes(body, record.vector?.length ?? 0) - entryBytes((tombstone.body as { entry: JsonValue }).entry, 0);
        return { ...tombstone, ifVersion: record.version };
      });
      const next = { ...head, liveBytes: Math.max(0, head.liveBytes - numBytes) };
      await store.put([...puts, headPut(services.sha256, tenant, next, version)]);
    });
  const records: MemoryRecord[] = [];
  for await (const record of ownedRecords(store, tenant, owner)) records.push(record);
  for (let from = 0; from < records.length; from += CHUNK) {
    const chunk = records.slice(from, from + CHUNK);
    await erase(chunk);
    // Edges say what an entry was about: which texts it used, and which requests resemble it.
    for (const { id } of chunk) {
      const edges = await store.edgesOf(tenant, { ids: [id], direction: 'both', limit: MAX_EDGES });
      for (let at = 0; at < edges.length; at += CHUNK) await store.deleteEdges(tenant, edges.slice(at, at + CHUNK));
    }
  }
}

async function eraseArchived(
  { store, services, archive }: EraseContext,
  tenant: string,
  owner: EntryOwner,
): Promise<void> {
  for (const { manifest } of archive === null ? [] : await readManifests(store, tenant)) {
    const entries = await readSegment(archive!, services.sha256, tenant, manifest);
    if (!entries.some(({ body }) => isOwned(body, owner))) continue;
    const kept = entries.map((entry) => (isOwned(entry.body, owner) ? toTombstone(entry) : entry));
    // The new file has a new name; after a crash the one without a manifest is removed with the next start.
    await store.put([manifestPut(services.sha256, tenant, await writeSegment(archive!, services, tenant, kept))]);
    await archive!.delete(manifest.file);
  }
}
