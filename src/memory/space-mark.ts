import { nameId } from './common/ids.ts';
import type { MemoryServices } from './common/services.ts';
import type { MemoryStore } from './types.ts';

/**
 * Notes what makes the vectors, and says when that is another than the last time: vectors of two spaces are never compared, so what was
 * added before would be missing from searches without a word.
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
      `vectors were made by ${before} and are made by ${space} from now on: what was added before is not found by meaning ` +
        'until the same embedder is back, or it is exported and imported',
    );
  }
  // A disk that is full keeps nobody from searching; it is said again the next time.
  const fields = { expiresMs: null, fields: {}, vector: null, space: null } as const;
  await store.put([{ id, tenant: owner, kind: 'state', ...fields, body: { space } }]).catch(() => {});
}
