import type { ErasureSubject } from '../../core/erasure.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Sona } from '../../learning/sona/sona.ts';
import { createFloatBlobs } from '../../learning/versions/blobs.ts';
import type { Memory } from '../../memory/memory.ts';

/** Requests in one condition. */
const CHUNK = 500;

/** Deletes what was learned from a user or request, and learns again from the remaining requests. */
export async function eraseLearned(
  sona: Sona,
  { tenant, userId, requestIds, quotingIds }: ErasureSubject,
): Promise<void> {
  const ids = [...requestIds, ...quotingIds];
  for (let from = 0; from < ids.length; from += CHUNK) {
    await sona.forget(tenant, [{ field: 'requestId', is: 'in', values: ids.slice(from, from + CHUNK) }]);
  }
  if (userId !== null) await sona.forget(tenant, [{ field: 'userId', is: '=', value: userId }]);
}

/** Counts versions in use and stored weights that learned from these requests. */
export async function countLearned(
  sona: Sona,
  { store, services }: Pick<Memory, 'store' | 'services'>,
  { tenant, requestIds, quotingIds }: ErasureSubject,
): Promise<number> {
  const gone = new Set([...requestIds, ...quotingIds]);
  const blobs = createFloatBlobs(store, services);
  const isLearned = (ids: readonly string[]): boolean => ids.some((id) => gone.has(id));
  const exists = (hash: string): Promise<boolean> =>
    blobs.get(tenant, hash).then(
      () => true,
      (error: unknown) => !(error instanceof RuvLLMError && error.code === 'not_found'),
    );
  let numLearned = 0;
  for (const line of await sona.versions.lines(tenant)) {
    const active = await sona.versions.active(tenant, line);
    if (active !== null && isLearned(active.learnedFrom)) numLearned++;
    const history = await sona.versions.history(tenant, line, 1000);
    // Versions share anchors; those of the others stay.
    const shared = new Set(history.flatMap((one) => (isLearned(one.learnedFrom) ? [] : Object.values(one.blobs))));
    for (const { learnedFrom, blobs: names } of history) {
      for (const hash of isLearned(learnedFrom) ? Object.values(names) : []) {
        if (!shared.has(hash) && (await exists(hash))) numLearned++;
      }
    }
  }
  for (const model of await sona.taughtModels(tenant)) if (isLearned(await sona.taught(tenant, model))) numLearned++;
  return numLearned;
}
