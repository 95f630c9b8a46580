import type { MemoryStore, PutRecord } from './types.ts';

/** Called after a change is stored, so that copies of records can follow. */
export interface StoreListener {
  put(records: readonly PutRecord[]): void;
  delete(tenant: string, ids: readonly string[]): void;
  erase(tenant: string): void;
}

/** Returns an unsubscribe function. */
export type WatchStore = (listener: StoreListener) => () => void;

/** A store that reports its own changes; those of other processes are not seen. */
export function watchStore(store: MemoryStore): { store: MemoryStore; watch: WatchStore } {
  const listeners = new Set<StoreListener>();
  const watched: MemoryStore = {
    ...store,
    async put(records) {
      const written = await store.put(records);
      for (const listener of listeners) listener.put(records);
      return written;
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
