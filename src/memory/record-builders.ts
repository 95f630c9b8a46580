import { buildEntries } from './audit/build-entries.ts';
import type { Sha256 } from './common/services.ts';
import { buildTrajectories } from './schemas/trajectory.ts';
import type { MemoryStore } from './types.ts';

/** Checks, canonical JSON and hashes of the records of each request, which take longer than everything else of its end. */
const BUILDERS = { entries: buildEntries, trajectories: buildTrajectories };

type BuilderName = keyof typeof BUILDERS;
type InputOf<N extends BuilderName> = Parameters<(typeof BUILDERS)[N]>[0];
type ResultOf<N extends BuilderName> = ReturnType<(typeof BUILDERS)[N]>['result'];

/** Builds records and puts them; in the store's thread where it has one. */
export async function putBuilt<N extends BuilderName>(
  store: Pick<MemoryStore, 'put' | 'putBuilt'>,
  sha256: Sha256,
  name: N,
  input: InputOf<N>,
): Promise<ResultOf<N>> {
  if (store.putBuilt !== undefined) return (await store.putBuilt(name, input)) as ResultOf<N>;
  const { records, result } = (BUILDERS[name] as (input: InputOf<N>, sha256: Sha256) => ReturnType<(typeof BUILDERS)[N]>)(input, sha256); // prettier-ignore
  await store.put(records);
  return result as ResultOf<N>;
}

/** A store whose callers need not build the records of requests. */
export function withBuilders(store: MemoryStore, sha256: Sha256): MemoryStore {
  return { ...store, putBuilt: (name, input) => putBuilt(store, sha256, name as BuilderName, input as never) };
}
