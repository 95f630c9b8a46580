import { RuvLLMError } from '../core/errors.ts';
import { createSerialQueue } from '../core/serial-queues.ts';
import { nameId } from './common/ids.ts';
import { retryConflict } from './common/retry-conflict.ts';
import type { MemoryServices } from './common/services.ts';
import type { MemoryStore } from './types.ts';

/** Who has something here, over restarts: a store cannot tell, for it knows tenants by keyed names only. */
export interface TenantList {
  all(): readonly string[];
  /** Durable when it resolves; at once for those who are known. */
  add(tenant: string): Promise<void>;
  remove(tenant: string): Promise<void>;
}

/** What one record holds, and more than one machine serves. */
const MAX_TENANTS = 10_000;

/** Opens the list that is kept for `owner`. */
export async function openTenantList(
  store: MemoryStore,
  services: Pick<MemoryServices, 'sha256'>,
  owner: string,
): Promise<TenantList> {
  const id = nameId(services.sha256, owner, 'tenants');
  let names = new Set<string>();
  let version = 0;

  async function load(): Promise<void> {
    const [record] = await store.get(owner, [id]);
    version = record?.version ?? 0;
    const known = (record?.body as { readonly names?: readonly string[] } | undefined)?.names ?? [];
    names = new Set(known);
  }

  const change = (edit: (names: Set<string>) => void): Promise<void> =>
    retryConflict(async (numTries) => {
      if (numTries > 0) await load();
      const next = new Set(names);
      edit(next);
      if (next.size > MAX_TENANTS) {
        throw new RuvLLMError('overloaded', `the memory has ${names.size} tenants, at most ${MAX_TENANTS} can be kept`);
      }
      const record = {
        id,
        tenant: owner,
        kind: 'state',
        expiresMs: null,
        fields: {},
        vector: null,
        space: null,
      } as const;
      const [written] = await store.put([{ ...record, body: { names: [...next] }, ifVersion: version }]);
      names = next;
      version = written!.version;
    });

  await load();
  /** One after the other: two at once would take each other's version for a conflict. */
  const queue = createSerialQueue();
  return {
    all: () => [...names],
    async add(tenant) {
      if (!names.has(tenant)) await queue(() => change((set) => set.add(tenant)));
    },
    async remove(tenant) {
      if (names.has(tenant)) await queue(() => change((set) => set.delete(tenant)));
    },
  };
}
