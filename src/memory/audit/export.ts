import { auditFromBody, auditFromRecord, isTombstone, type LinkedEntry } from '../schemas/audit.ts';
import { readManifests, readSegment } from './archive.ts';
import { readHead } from './head.ts';
import { readLive } from './live-entries.ts';
import type { VerifyContext } from './verify.ts';

export interface ExportedEntry extends LinkedEntry {
  /** Archived entries have no vector. */
  readonly isArchived: boolean;
}

/** All entries that were neither deleted nor erased, the oldest first; throws `io` where one cannot be read. */
export async function* exportAudit(
  { store, services, archive }: VerifyContext,
  tenant: string,
  afterSequence = 0,
): AsyncGenerator<ExportedEntry> {
  const { head } = await readHead(store, services.sha256, tenant);
  for (const { manifest } of archive === null ? [] : await readManifests(store, tenant)) {
    const isGone = manifest.lastSequence <= Math.max(head.trimmed.sequence, afterSequence);
    if (isGone || manifest.firstSequence > head.archived.sequence) continue;
    for (const { id, createdMs, body, link } of await readSegment(archive!, services.sha256, tenant, manifest)) {
      if (link.sequence <= afterSequence || isTombstone(body)) continue;
      const entry = auditFromBody({ ...(body as object), space: null }, null);
      yield { id, createdMs, entry, link, isArchived: true };
    }
  }
  const from = Math.max(head.archived.sequence, afterSequence) + 1;
  for await (const entries of readLive(store, tenant, { from, to: head.sequence })) {
    for (const { record, body } of entries)
      if (!isTombstone(body)) yield { ...auditFromRecord(record), isArchived: false };
  }
}
