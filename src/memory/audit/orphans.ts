import { readManifests, segmentContext, type SegmentManifest } from './archive.ts';
import { readHead, type ChainHead } from './head.ts';
import type { RetentionContext } from './retention.ts';

interface Chain {
  readonly tenant: string;
  readonly head: ChainHead;
  readonly manifests: readonly SegmentManifest[];
}

/** Files opened in one run: the file of an erased tenant is tried with every key. */
const MAX_LOOKED_INTO = 16;

/**
 * Deletes segments whose writer was killed before it wrote their manifest; returns their number. Considers only segments from
 * before the archive was opened, and deletes only those whose entries are elsewhere or trimmed: a segment that lost its manifest
 * holds the only copy. `isSound` says, after everything was read, whether the store is still the one with the manifests.
 */
export async function removeOrphans(
  { store, services, archive }: Pick<RetentionContext, 'store' | 'services' | 'archive'>,
  tenants: readonly string[],
  isSound: () => boolean = () => true,
): Promise<number> {
  const old = (await archive?.leftBehind?.()) ?? [];
  if (archive === null || old.length === 0) return 0;
  const chains: Chain[] = [];
  for (const tenant of tenants) {
    const manifests = (await readManifests(store, tenant)).map(({ manifest }) => manifest);
    chains.push({ tenant, manifests, head: (await readHead(store, services.sha256, tenant)).head });
  }
  const named = new Set(chains.flatMap(({ manifests }) => manifests.map(({ file }) => file)));
  let numDeleted = 0;
  for (const file of old.filter((name) => !named.has(name)).slice(0, MAX_LOOKED_INTO)) {
    const bytes = await archive.read(file);
    if (bytes === null) continue;
    for (const chain of chains) {
      if (!isElsewhere(chain, firstSequenceOf(file)) || !(await opens(chain.tenant, file, bytes))) continue;
      if (!isSound()) return numDeleted;
      await archive.delete(file);
      numDeleted++;
      break;
    }
  }
  return numDeleted;

  function opens(tenant: string, file: string, bytes: Uint8Array): Promise<boolean> {
    return archive!.unseal(tenant, bytes, segmentContext(file)).then(() => true, () => false); // prettier-ignore
  }
}

/** The seal covers the name, so this number is trustworthy. */
const firstSequenceOf = (file: string): number => Number.parseInt(file, 10);

function isElsewhere({ head, manifests }: Chain, sequence: number): boolean {
  if (sequence <= head.trimmed.sequence) return true;
  if (sequence > head.archived.sequence) return sequence <= head.sequence;
  return manifests.some(({ firstSequence, lastSequence }) => firstSequence <= sequence && sequence <= lastSequence);
}
