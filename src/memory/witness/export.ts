import { witnessFromBody, witnessFromRecord, type LinkedWitness } from '../schemas/witness.ts';
import { readManifests, readSegment } from './archive.ts';
import { readHead } from './head.ts';
import { readLive } from './live-entries.ts';
import type { VerifyContext } from './verify.ts';

export interface ExportedWitness extends LinkedWitness {
  /** Entries from the archive have lost their vector. */
  readonly isArchived: boolean;
}

/** Every entry of a chain that is still there, the oldest first; throws `io` where one cannot be read. */
export async function* exportWitness(
  { store, services, archive }: VerifyContext,
  tenant: string,
): AsyncGenerator<ExportedWitness> {
  const { head } = await readHead(store, services.sha256, tenant);
  for (const { manifest } of archive === null ? [] : await readManifests(store, tenant)) {
    if (manifest.lastSequence <= head.trimmed.sequence || manifest.firstSequence > head.archived.sequence) continue;
    for (const { id, createdMs, body, link } of await readSegment(archive!, services.sha256, tenant, manifest)) {
      const entry = witnessFromBody({ ...(body as object), space: null }, null);
      yield { id, createdMs, entry, link, isArchived: true };
    }
  }
  for await (const entries of readLive(store, tenant, { from: head.archived.sequence + 1, to: head.sequence })) {
    for (const { record } of entries) yield { ...witnessFromRecord(record), isArchived: false };
  }
}
