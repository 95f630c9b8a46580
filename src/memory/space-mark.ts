import { nameId } from './common/ids.ts';
import type { MemoryServices } from './common/services.ts';
import { statePut } from './common/store-access.ts';
import type { Embedder } from './embedder-types.ts';
import { forgetReindex } from './reindex.ts';
import type { MemoryStore } from './types.ts';

/** The embedder that last made vectors. */
export interface SpaceMark {
  readonly space: string;
  readonly embedder: string;
}

export async function readSpace(
  store: MemoryStore,
  services: Pick<MemoryServices, 'sha256'>,
  owner: string,
): Promise<SpaceMark | null> {
  const [record] = await store.get(owner, [nameId(services.sha256, owner, 'space')]);
  const mark = record?.body as Partial<SpaceMark> | undefined;
  return mark?.space === undefined ? null : { space: mark.space, embedder: mark.embedder ?? mark.space };
}

/**
 * Records which embedder makes the vectors and reports a change: vectors of two spaces are never compared, so older records
 * would silently be missing from searches.
 */
export async function noteSpace(
  store: MemoryStore,
  services: Pick<MemoryServices, 'sha256'>,
  owner: string,
  { fingerprint: space, name: embedder = space }: Pick<Embedder, 'fingerprint' | 'name'>,
  isReindexed: boolean,
  report: (message: string) => void,
): Promise<void> {
  const id = nameId(services.sha256, owner, 'space');
  const before = await readSpace(store, services, owner);
  if (before?.space === space && before.embedder === embedder) return;
  if (before !== null && before.space !== space) {
    const consequence = isReindexed
      ? 'records added before are found by meaning when they are re-indexed, which begins in the background'
      : 'records added before are not found by meaning until that embedder is used again';
    report(`the embedder changed from ${before.embedder} to ${embedder}: ${consequence}`);
    // Before the mark: with the mark alone, a killed process would leave the records of this embedder without vectors of the next.
    await forgetReindex(store, services).catch(() => {});
  }
  // A full disk must not prevent searches; the next start reports it again.
  await store.put([statePut({ id, tenant: owner }, { space, embedder })]).catch(() => {});
}
