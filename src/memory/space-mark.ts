import { nameId } from './common/ids.ts';
import type { MemoryServices } from './common/services.ts';
import { statePut } from './common/store-access.ts';
import type { MemoryStore } from './types.ts';

/**
 * Records which embedder makes the vectors and reports a change: vectors of two spaces are never compared, so older records
 * would silently be missing from searches.
 */
export async function noteSpace(
  store: MemoryStore,
  services: Pick<MemoryServices, 'sha256'>,
  owner: string,
  space: string,
  report: (message: string) => void,
): Promise<void> {
  const id = nameId(services.sha256, owner, 'space');
  const [record] = await store.get(owner, [id]);
  const before = (record?.body as { readonly space?: string } | undefined)?.space;
  if (before === space) return;
  if (before !== undefined) {
    report(
      `the embedder changed from ${before} to ${space}: records added before are not found by meaning. ` +
        'Use the same embedder again, or export and import them.',
    );
  }
  // A full disk must not prevent searches; the next start reports it again.
  await store.put([statePut({ id, tenant: owner }, { space })]).catch(() => {});
}
