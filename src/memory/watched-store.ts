import { RuvLLMError } from '../core/errors.ts';
import type { MemoryStore, PutRecord } from './types.ts';

/** Called after a change is stored, so that copies of records can follow. */
export interface StoreListener {
  put(records: readonly PutRecord[]): void;
  delete(tenant: string, ids: readonly string[]): void;
  erase(tenant: string): void;
}

/** Returns an unsubscribe function. */
export type WatchStore = (listener: StoreListener) => () => void;

/** Refuses writes of tenants that are being erased: they would survive the erasure. */
export interface WriteLocks {
  add(tenant: string): void;
  delete(tenant: string): void;
  /** Throws `conflict` for a locked tenant. */
  check(tenant: string): void;
}

export function createWriteLocks(): WriteLocks {
  const locked = new Set<string>();
  return {
    add: (tenant) => void locked.add(tenant),
    delete: (tenant) => void locked.delete(tenant),
    check(tenant) {
      if (!locked.has(tenant)) return;
      throw new RuvLLMError('conflict', 'this tenant is being erased; try again', { isRetryable: true });
    },
  };
}

/** A store that reports its own changes; those of other processes are not seen. */
export function watchStore(store: MemoryStore, locks: WriteLocks): { store: MemoryStore; watch: WatchStore } {
  const listeners = new Set<StoreListener>();
  const watched: MemoryStore = {
    ...store,
    async put(records) {
      for (const { tenant } of records) locks.check(tenant);
      const written = await store.put(records);
      for (const listener of listeners) listener.put(records);
      return written;
    },
    async putEdges(tenant, edges) {
      locks.check(tenant);
      await store.putEdges(tenant, edges);
    },
    async delete(tenant, ids) {
      // Before the deletion, so that no search returns a record that is gone.
      for (const listener of listeners) listener.delete(tenant, ids);
      return store.delete(tenant, ids);
    },
    async eraseTenant(tenant) {
      for (const listener of listeners) listener.erase(tenant);
      await store.eraseTenant(tenant);
      for (const listener of listeners) listener.erase(tenant); // what was read meanwhile
    },
  };
  return {
    store: watched,
    watch(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
