import { createLruMap } from '../common/lru-map.ts';
import { retryConflict } from '../common/retry-conflict.ts';
import type { MemoryServices } from '../common/services.ts';
import { putBuilt } from '../record-builders.ts';
import type { AuditEntry, LinkedEntry } from '../schemas/audit.ts';
import type { MemoryStore, PutRecord } from '../types.ts';
import { type AuditBatch, type ChainBatch, extendChain, type PreparedEntry } from './build-entries.ts';
import { readHead, type StoredHead } from './head.ts';

/** Chain heads kept in memory. */
const MAX_HEADS = 1000;

interface AppendBatch extends ChainBatch<PreparedEntry> {
  /** Further records of the same call, read again when it is repeated. */
  alongside(isRepeated: boolean): Promise<readonly PutRecord[]>;
}

/** Appends to the chains of tenants; entries, head and `alongside` are written in one call. */
export function createAppender(store: MemoryStore, services: MemoryServices) {
  const { sha256 } = services;
  const heads = createLruMap<StoredHead>(MAX_HEADS);
  const headOf = async (tenant: string): Promise<StoredHead> => heads.get(tenant) ?? readHead(store, sha256, tenant);
  /** After an error the store's state is unknown: the next batch reads the head again. */
  const forgetting = async <T>(tenant: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      heads.delete(tenant);
      throw error;
    }
  };
  const attempt = async (batch: AppendBatch, isRepeated: boolean): Promise<readonly LinkedEntry[]> => {
    const { tenant } = batch;
    const last = isRepeated ? await readHead(store, sha256, tenant) : await headOf(tenant);
    const { head, linked, records } = extendChain(sha256, services.now(), last, batch);
    await store.put([...records, ...(await batch.alongside(isRepeated))]);
    heads.set(tenant, { head, version: last.version + 1 });
    return linked;
  };
  return {
    /** Returns the entries it wrote, without those that an earlier attempt wrote although it seemed to fail. */
    append: (batch: AppendBatch): Promise<readonly LinkedEntry[]> =>
      forgetting(batch.tenant, () =>
        retryConflict(async (numTries) => {
          if (numTries === 0) return attempt(batch, false);
          const ids = batch.items.map(({ id }) => id);
          const there = await store.get(batch.tenant, ids);
          const items = batch.items.filter((_, index) => there[index] === null);
          return items.length === 0 ? [] : attempt({ ...batch, items }, true);
        }),
      ),
    /** Lets the store's thread build the entries; tries once, and all or none are written. */
    appendInputs: (batch: Omit<AuditBatch, 'nowMs' | 'last'>): Promise<readonly LinkedEntry[]> =>
      forgetting(batch.tenant, async () => {
        const { tenant, items } = batch;
        const last = await headOf(tenant);
        const { head, links, repaired } = await putBuilt(store, sha256, 'entries', { ...batch, last, nowMs: services.now() }); // prettier-ignore
        heads.set(tenant, { head, version: last.version + 1 });
        return links.map((link, i) => {
          const { id, input } = items[i]!;
          return { id, ...link, entry: repaired[i] ?? ({ ...input, numCut: 0, repairs: [] } as unknown as AuditEntry) };
        });
      }),
  };
}
