import { witnessFromBody, witnessFromRecord, type LinkedWitness } from '../schemas/witness.ts';
import { readManifests, readSegment } from './archive.ts';
import { readHead } from './head.ts';
import { readLive } from './live-entries.ts';
import type { VerifyContext } from './verify.ts';

export interface ExportedWitness extends LinkedWitness {
  /** Entries from the archive have lost their vector. */
  readonly isArchived: boolean;
}

/** Every entry of a chain that is still there, after one or from the start, the oldest first; throws `io` where one cannot be read. */
export async function* exportWitness(
  { store, services, archive }: VerifyContext,
  tenant: string,
  afterSequence = 0,
): AsyncGenerator<ExportedWitness> {
  const { head } = await readHead(store, services.sha256, tenant);
  for (const { manifest } of archive === null ? [] : await readManifests(store, tenant)) {
    const isGone = manifest.lastSequence <= Math.max(head.trimmed.sequence, afterSequence);
    if (isGone || manifest.firstSequence > head.archived.sequence) continue;
    for (const { id, createdMs, body, link } of await readSegment(archive!, services.sha256, tenant, manifest)) {
      if (link.sequence <= afterSequence) continue;
      const entry = witnessFromBody({ ...(body as object), space: null }, null);
      yield { id, createdMs, entry, link, isArchived: true };
    }
  }
  const from = Math.max(head.archived.sequence, afterSequence) + 1;
  for await (const entries of readLive(store, tenant, { from, to: head.sequence })) {
    for (const { record } of entries) yield { ...witnessFromRecord(record), isArchived: false };
  }
}
