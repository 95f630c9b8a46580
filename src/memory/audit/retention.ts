import { integerOption, optional, resolveOptions } from '../../core/options.ts';
import { isConflict, retryConflict } from '../common/retry-conflict.ts';
import type { MemoryServices } from '../common/services.ts';
import { AUDIT_KIND, type MemoryStore } from '../types.ts';
import { manifestPut, readManifests, writeSegment, type ArchivedEntry, type AuditArchive } from './archive.ts';
import { entryBytes } from './chain.ts';
import { headPut, readHead, type ChainHead } from './head.ts';
import { readLive } from './live-entries.ts';

const DAY_MS = 86_400_000;
/** Entries in a segment, and in one delete. */
const MAX_SEGMENT_ENTRIES = 500;

export interface RetentionOptions {
  /** How long entries stay in the store. Default 7 days. */
  readonly maxAgeMs?: number;
  /** Size of the entries in the store. Default 1 GiB. */
  readonly maxBytes?: number;
  /** How long segments stay in the archive. Default: forever. */
  readonly archiveMaxAgeMs?: number | null;
  /** Size of the archive. Default: unlimited. */
  readonly archiveMaxBytes?: number | null;
}
type ResolvedRetention = Required<RetentionOptions>;

export function resolveRetention(options?: RetentionOptions): Readonly<ResolvedRetention> {
  return resolveOptions<ResolvedRetention>('audit retention', options, {
    maxAgeMs: integerOption(7 * DAY_MS, 0, 36_500 * DAY_MS),
    maxBytes: integerOption(2 ** 30, 0, 2 ** 50),
    archiveMaxAgeMs: optional(integerOption(0, 0, 36_500 * DAY_MS)),
    archiveMaxBytes: optional(integerOption(0, 0, 2 ** 50)),
  });
}

export interface RetentionContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  /** Null: entries that leave the store are deleted. */
  readonly archive: AuditArchive | null;
  readonly retention: Readonly<ResolvedRetention>;
}

export interface RetentionReport {
  /** Entries that left the store. */
  readonly numMoved: number;
  readonly numSegments: number;
  readonly numSegmentsDeleted: number;
}

interface Moving {
  readonly entries: readonly ArchivedEntry[];
  readonly bytes: number;
}

/** The oldest entries beyond the limits; always from the start of the chain, so that it is cut in one place. */
async function pickOldest(
  { store, services, retention }: RetentionContext,
  tenant: string,
  head: ChainHead,
): Promise<Moving> {
  const entries: ArchivedEntry[] = [];
  const from = head.archived.sequence + 1;
  const to = Math.min(head.sequence, from + MAX_SEGMENT_ENTRIES - 1);
  const oldestMs = services.now() - retention.maxAgeMs;
  let bytes = 0;
  for await (const window of readLive(store, tenant, { from, to })) {
    for (const { record, body, link } of window) {
      // Moving entries behind a hole would make the hole look like retention; `verify` reports it.
      if (link === null || link.sequence !== from + entries.length) return { entries, bytes };
      if (record.createdMs >= oldestMs && head.liveBytes - bytes <= retention.maxBytes) return { entries, bytes };
      entries.push({ id: record.id, createdMs: record.createdMs, body, link });
      bytes += entryBytes(body, record.vector?.length ?? 0);
    }
  }
  return { entries, bytes };
}

/** Moves one segment; returns the number of entries. */
async function moveOldest(context: RetentionContext, tenant: string): Promise<number> {
  const { store, services, archive } = context;
  const moved = await retryConflict(async () => {
    const { head, version } = await readHead(store, services.sha256, tenant);
    const { entries, bytes } = await pickOldest(context, tenant, head);
    const last = entries.at(-1);
    if (last === undefined) return [];
    const mark = { sequence: last.link.sequence, hash: last.link.hash };
    const manifest = archive === null ? null : await writeSegment(archive, services, tenant, entries);
    const next = {
      ...head,
      liveBytes: Math.max(0, head.liveBytes - bytes),
      archived: mark,
      trimmed: manifest === null ? mark : head.trimmed,
    };
    const puts = manifest === null ? [] : [manifestPut(services.sha256, tenant, manifest)];
    try {
      await store.put([headPut(services.sha256, tenant, next, version), ...puts]);
    } catch (error) {
      // Another process was first, so this file has no manifest. After any other failure it may have one.
      if (manifest !== null && isConflict(error)) await archive!.delete(manifest.file).catch(() => {});
      throw error;
    }
    return entries.map(({ id }) => id);
  });
  if (moved.length > 0) await store.delete(tenant, moved);
  return moved.length;
}

/** Deletes entries that a crash left in the store after the head was moved. */
async function deleteLeftovers({ store, services }: RetentionContext, tenant: string): Promise<void> {
  const { head } = await readHead(store, services.sha256, tenant);
  const filter = { fields: [{ field: 'sequence', is: '<=', value: head.archived.sequence }] } as const;
  for (;;) {
    const query = { kinds: [AUDIT_KIND], filter, order: 'oldest', limit: MAX_SEGMENT_ENTRIES } as const;
    const { records } = await store.find(tenant, query);
    if (records.length === 0) return;
    await store.delete(tenant, records.map(({ id }) => id)); // prettier-ignore
  }
}

async function trimArchive({ store, services, archive, retention }: RetentionContext, tenant: string): Promise<number> {
  const { archiveMaxAgeMs, archiveMaxBytes } = retention;
  if (archive === null) return 0;
  const manifests = await readManifests(store, tenant);
  const { head: before } = await readHead(store, services.sha256, tenant);
  let bytes = manifests.reduce((sum, { manifest }) => sum + manifest.fileBytes, 0);
  let numDeleted = 0;
  for (const { id, manifest } of manifests) {
    const isOld = archiveMaxAgeMs !== null && manifest.lastMs < services.now() - archiveMaxAgeMs;
    const isMuch = archiveMaxBytes !== null && bytes > archiveMaxBytes;
    const isTrimmed = manifest.lastSequence <= before.trimmed.sequence;
    if (!isOld && !isMuch && !isTrimmed) break;
    // The head first: a crash then leaves a surplus file, not a broken chain.
    await retryConflict(async () => {
      const { head, version } = await readHead(store, services.sha256, tenant);
      if (head.trimmed.sequence >= manifest.lastSequence) return;
      const trimmed = { sequence: manifest.lastSequence, hash: manifest.lastHash };
      await store.put([headPut(services.sha256, tenant, { ...head, trimmed }, version)]);
    });
    await archive.delete(manifest.file);
    await store.delete(tenant, [id]);
    bytes -= manifest.fileBytes;
    numDeleted++;
  }
  return numDeleted;
}

/** Moves entries beyond the limits out of the store, into segments where there is an archive. */
export async function retainAudit(context: RetentionContext, tenant: string): Promise<RetentionReport> {
  await deleteLeftovers(context, tenant);
  let numMoved = 0;
  let numSegments = 0;
  for (;;) {
    const moved = await moveOldest(context, tenant);
    if (moved === 0) break;
    numMoved += moved;
    if (context.archive !== null) numSegments++;
  }
  return { numMoved, numSegments, numSegmentsDeleted: await trimArchive(context, tenant) };
}
