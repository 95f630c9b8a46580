import { readManifests, segmentContext, type SegmentManifest } from './archive.ts';
import { readHead, type ChainHead } from './head.ts';
import type { RetentionContext } from './retention.ts';

interface Chain {
  readonly tenant: string;
  readonly head: ChainHead;
  readonly manifests: readonly SegmentManifest[];
}

/** Files that are looked into in one go: a file of a tenant who was erased opens for nobody, and is tried with every key. */
const MAX_LOOKED_INTO = 16;

/**
 * Deletes segments that a process wrote and was killed before it named them; the number deleted. Only of those that were there when the
 * archive was opened, which nobody else is about to name, and only what the chain has elsewhere or has let go: one whose manifest is
 * lost stays, for it holds the only copy. `isSound` says, after all was read, whether the store is the one that names segments.
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

/** The seal covers the name, so the number in it is that of the first entry inside. */
const firstSequenceOf = (file: string): number => Number.parseInt(file, 10);

function isElsewhere({ head, manifests }: Chain, sequence: number): boolean {
  if (sequence <= head.trimmed.sequence) return true;
  if (sequence > head.archived.sequence) return sequence <= head.sequence;
  return manifests.some(({ firstSequence, lastSequence }) => firstSequence <= sequence && sequence <= lastSequence);
}
