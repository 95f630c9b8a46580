import { RuvLLMError } from '../core/errors.ts';
import { createSerialQueue } from '../core/serial-queues.ts';
import { nameId } from './common/ids.ts';
import { retryConflict } from './common/retry-conflict.ts';
import { atOnce, type Eventually } from './common/eventually.ts';
import type { MemoryServices } from './common/services.ts';
import { statePut } from './common/store-access.ts';
import type { MemoryStore } from './types.ts';
import type { WriteLocks } from './watched-store.ts';

/** The tenants with data, kept over restarts: a store knows only their keyed names. */
interface TenantList {
  all(): readonly string[];
  /** Durable when it resolves. */
  add(tenant: string): Promise<void>;
  remove(tenant: string): Promise<void>;
}

/** Bounded by the size of a record. */
const MAX_TENANTS = 10_000;

/** Opens the list that is kept for `owner`. */
export async function openTenantList(
  store: MemoryStore,
  services: Pick<MemoryServices, 'sha256'>,
  owner: string,
  locks: Pick<WriteLocks, 'check'>,
  eventually: Eventually = atOnce,
): Promise<TenantList> {
  const id = nameId(services.sha256, owner, 'tenants');
  let names = new Set<string>();
  let version = 0;

  async function load(): Promise<void> {
    const [record] = await store.get(owner, [id]);
    version = record?.version ?? 0;
    names = new Set((record?.body as { readonly names?: readonly string[] } | undefined)?.names);
  }

  const change = (edit: (names: Set<string>) => void): Promise<void> =>
    retryConflict(async (numTries) => {
      if (numTries > 0) await load();
      const next = new Set(names);
      edit(next);
      if (next.size > MAX_TENANTS) {
        throw new RuvLLMError('overloaded', `the memory has ${names.size} tenants, the maximum is ${MAX_TENANTS}`);
      }
      const [written] = await store.put([statePut({ id, tenant: owner, ifVersion: version }, { names: [...next] })]);
      names = next;
      version = written!.version;
    });

  // A change before that conflicts, and loads the list.
  await eventually(load);
  /** Serial: two changes at once would conflict. */
  const queue = createSerialQueue();
  return {
    all: () => [...names],
    async add(tenant) {
      locks.check(tenant);
      if (names.has(tenant)) return;
      await queue(() =>
        change((set) => {
          locks.check(tenant); // an erasure may have started meanwhile
          set.add(tenant);
        }),
      );
    },
    async remove(tenant) {
      if (names.has(tenant)) await queue(() => change((set) => set.delete(tenant)));
    },
  };
}
