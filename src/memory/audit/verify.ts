import { messageOf, RuvLLMError } from '../../core/errors.ts';
import type { MemoryServices } from '../common/services.ts';
import { auditFromRecord, auditToRecord, isTombstone } from '../schemas/audit.ts';
import { AUDIT_KIND, type JsonValue, type MemoryStore } from '../types.ts';
import { readManifests, readSegment, type ArchivedEntry, type AuditArchive, type SegmentManifest } from './archive.ts';
import { hashLink, hashVector } from './chain.ts';
import { readHead, type ChainHead, type ChainMark } from './head.ts';
import { readLive, type LiveEntry } from './live-entries.ts';
import { findRuns, toGap, type AuditGap } from './runs.ts';

export interface AuditReport {
  readonly isIntact: boolean;
  /** Entries whose hash was checked. */
  readonly numChecked: number;
  /** Of those, archived ones. */
  readonly numArchived: number;
  /** Retention deleted the entries up to this one; its hash anchors the chain. */
  readonly trimmed: ChainMark;
  /** The end of the chain. A copy kept elsewhere proves later that nothing was cut off. */
  readonly head: ChainMark;
  /** Null: intact. Entries before it are unchanged. */
  readonly brokenAt: { readonly sequence: number; readonly reason: string } | null;
  /** Entries dropped before they were written, as recorded in the chain. */
  readonly numDropped: number;
  /** Crashed runs and the last entry each wrote here; the missing entries came right after it. */
  readonly gaps: readonly (AuditGap & { readonly afterSequence: number })[];
}

export interface VerifyContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly archive: AuditArchive | null;
  readonly stateTenant: string;
}

/** Entries beyond the head that are counted. */
const MAX_BEYOND = 1000;

/** State of a walk along a chain. */
interface Walk {
  sequence: number;
  hash: string;
  lastMs: number;
  numChecked: number;
  numArchived: number;
  numDropped: number;
  readonly lastOfRun: Map<string, number>;
  /** Tombstones that no entry has named yet: an erasure is recorded behind what it erased. */
  readonly unexplained: Set<number>;
}

const erasedBy = (body: JsonValue): readonly number[] =>
  (body as { readonly erased?: readonly number[] } | null)?.erased ?? [];

const broken = (reason: string): RuvLLMError => new RuvLLMError('io', reason);

function step(services: MemoryServices, walk: Walk, entry: ArchivedEntry): void {
  const { link } = entry;
  if (link.sequence !== walk.sequence + 1)
    throw broken(`entry ${walk.sequence + 1} is missing, ${link.sequence} comes next`);
  if (link.previousHash !== walk.hash) throw broken('does not follow the entry before it');
  // The hash of a tombstone is that of its lost content; the next entry confirms it.
  if (isTombstone(entry.body)) walk.unexplained.add(link.sequence);
  else if (hashLink(services.sha256, entry, link) !== link.hash) throw broken('was changed: its hash differs');
  for (const sequence of erasedBy(entry.body)) walk.unexplained.delete(sequence);
  if (entry.createdMs < walk.lastMs) throw broken(`is of ${entry.createdMs}, before the entry it follows`);
  walk.sequence = link.sequence;
  walk.hash = link.hash;
  walk.lastMs = entry.createdMs;
  walk.numChecked++;
  walk.numDropped += link.numDroppedBefore;
  walk.lastOfRun.set(link.runId, link.sequence);
}

/** Checks copies that the hash does not cover: the vector, and the fields for searches. */
function checkCopies(services: MemoryServices, { record, body }: LiveEntry): void {
  if (isTombstone(body)) {
    if (record.vector !== null) throw broken('is erased and has a vector');
    return;
  }
  const linked = auditFromRecord(record);
  if (hashVector(services.sha256, record.vector) !== linked.link.vectorHash) throw broken('has another vector');
  const { fields } = auditToRecord(linked, body, record.tenant);
  for (const [field, value] of Object.entries(fields)) {
    if ((record.fields[field] ?? null) !== value) throw broken(`is filed under another ${field} than it says`);
  }
}

/** The start of a walk. The store changes meanwhile: entries are added, archived, trimmed and erased. */
interface ChainView {
  readonly head: ChainHead;
  /** Or why they cannot be read, which the walk reports. */
  readonly manifests: readonly SegmentManifest[] | Error;
}

async function readView({ store, services }: VerifyContext, tenant: string): Promise<ChainView> {
  const { head } = await readHead(store, services.sha256, tenant);
  // After the head: segments that it names are there.
  const manifests = await readManifests(store, tenant).then(
    (stored) => stored.map(({ manifest }) => manifest),
    (error: unknown) => (error instanceof Error ? error : new Error(messageOf(error))),
  );
  return { head, manifests };
}

/** Whether entries left the place where a walk from `seen` looks for them; entries that were only added do not count. */
function wasMoved(seen: ChainView, now: ChainView): boolean {
  const placesOf = ({ head, manifests }: ChainView): string =>
    JSON.stringify([
      head.archived,
      head.trimmed,
      manifests instanceof Error ? null : manifests.map(({ file }) => file),
    ]);
  return now.head.sequence < seen.head.sequence || placesOf(now) !== placesOf(seen);
}

async function walkArchive(
  { services, archive }: VerifyContext,
  tenant: string,
  { head, manifests }: ChainView,
  walk: Walk,
): Promise<void> {
  if (manifests instanceof Error) throw manifests;
  for (const manifest of manifests) {
    if (manifest.lastSequence <= head.trimmed.sequence || manifest.firstSequence > head.archived.sequence) continue;
    if (archive === null) throw broken(`is in segment ${manifest.file}, and there is no archive to read it from`);
    for (const entry of await readSegment(archive, services.sha256, tenant, manifest)) {
      step(services, walk, entry);
      walk.numArchived++;
    }
  }
  if (walk.sequence !== head.archived.sequence || walk.hash !== head.archived.hash) {
    throw broken(`is archived according to the head (up to ${head.archived.sequence}), and in no segment`);
  }
}

/** From where the walk is to this head; later entries are ignored. */
async function walkLive(
  { store, services }: VerifyContext,
  tenant: string,
  head: ChainMark,
  walk: Walk,
): Promise<void> {
  for await (const entries of readLive(store, tenant, { from: walk.sequence + 1, to: head.sequence })) {
    for (const live of entries) {
      if (live.link === null) throw broken('has no link');
      if (live.link.sequence !== live.record.fields['sequence'])
        throw broken('is filed under another sequence than it says');
      step(services, walk, { id: live.record.id, createdMs: live.record.createdMs, body: live.body, link: live.link });
      try {
        checkCopies(services, live);
      } catch (error) {
        // An entry counts as checked only with its copies.
        walk.sequence--;
        walk.numChecked--;
        throw error;
      }
    }
  }
  if (walk.sequence !== head.sequence) throw broken(`is missing, the head is at ${head.sequence}`);
  if (walk.hash !== head.hash) throw broken('has another hash than the head');
}

/** Checks that an entry records each erasure. It may be behind the head that the walk started from, but not behind the present one. */
async function explainTombstones(
  context: VerifyContext,
  tenant: string,
  head: ChainHead,
  walk: Walk,
): Promise<ChainHead> {
  const met = [...walk.unexplained];
  if (met.length === 0) return head;
  const { head: now } = await readHead(context.store, context.services.sha256, tenant);
  if (now.sequence > head.sequence) await walkLive(context, tenant, now, walk);
  const lost = met.find((sequence) => walk.unexplained.has(sequence));
  if (lost === undefined) return now;
  walk.sequence = lost - 1;
  throw broken('has no content, and no entry records its erasure');
}

/** Entries and head are written in one call: those seen before the head was read are not beyond it. */
async function findBeyond({ store, services }: VerifyContext, tenant: string): Promise<void> {
  const { head: before } = await readHead(store, services.sha256, tenant);
  const filter = { fields: [{ field: 'sequence', is: '>', value: before.sequence }] } as const;
  const { records } = await store.find(tenant, { kinds: [AUDIT_KIND], filter, order: 'newest', limit: MAX_BEYOND });
  const { head: after } = await readHead(store, services.sha256, tenant);
  const numBeyond = records.filter(({ fields }) => Number(fields['sequence']) > after.sequence).length;
  if (numBeyond > 0) throw broken(`and ${numBeyond - 1} more are beyond the head at ${after.sequence}`);
}

async function verifyOnce(context: VerifyContext, tenant: string, view: ChainView): Promise<AuditReport> {
  let { head } = view;
  const { sequence, hash } = head.trimmed;
  const walk: Walk = {
    sequence,
    hash,
    lastMs: 0,
    numChecked: 0,
    numArchived: 0,
    numDropped: 0,
    lastOfRun: new Map(),
    unexplained: new Set(),
  };
  let brokenAt: AuditReport['brokenAt'] = null;
  try {
    await walkArchive(context, tenant, view, walk);
    await walkLive(context, tenant, head, walk);
    head = await explainTombstones(context, tenant, head, walk);
    await findBeyond(context, tenant);
    // A database that lost its last entries, or all of them, has a chain without a gap.
    const { lost: missing } = await context.store.stats(tenant);
    if (missing !== undefined) throw broken(`and later ones may be missing: ${missing}`);
  } catch (error) {
    // A store that cannot be asked now says nothing about the log; one that is damaged does.
    if (error instanceof RuvLLMError && error.isRetryable && error.data['isDamaged'] !== true) throw error;
    brokenAt = { sequence: walk.sequence + 1, reason: messageOf(error) };
  }
  const lost = await findRuns(context.store, context.stateTenant, false);
  const gaps = lost.flatMap(({ run }) => {
    const afterSequence = walk.lastOfRun.get(run.runId);
    return afterSequence === undefined ? [] : [{ ...toGap(run), afterSequence }];
  });
  const { numChecked, numArchived, numDropped } = walk;
  const end = { sequence: head.sequence, hash: head.hash };
  return {
    isIntact: brokenAt === null,
    numChecked,
    numArchived,
    numDropped,
    trimmed: head.trimmed,
    head: end,
    brokenAt,
    gaps,
  };
}

/**
 * Walks a tenant's chain through archive and store to the head that it has now, and says where it breaks. Entries that are written
 * meanwhile are not looked at; if some are moved or erased, the walk starts again.
 */
export async function verifyAudit(context: VerifyContext, tenant: string): Promise<AuditReport> {
  for (let view = await readView(context, tenant); ;) {
    const report = await verifyOnce(context, tenant, view);
    if (report.isIntact) return report;
    const now = await readView(context, tenant);
    if (!wasMoved(view, now)) return report;
    view = now;
  }
}
