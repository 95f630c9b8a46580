import type { MemoryRecord } from '../../types.ts';
import type { Tenant } from '../sealer.ts';

/** Opened records without vectors: reading and unsealing them is most of a search's cost. */
export interface RecordCache {
  get(tenant: Tenant, row: number): MemoryRecord | undefined;
  /** `bytes`: its approximate size. */
  set(tenant: Tenant, row: number, record: MemoryRecord, bytes: number): void;
  /** After a write. */
  drop(row: number): void;
  clear(): void;
}

interface Kept {
  /** Compared by identity: an erased and recreated tenant is another one. */
  readonly tenant: Tenant;
  readonly row: number;
  readonly record: MemoryRecord;
  readonly bytes: number;
  older: Kept | null;
  newer: Kept | null;
}

/**
 * Least recently used first, as a linked list: finding the first key of a `Map` skips all deleted ones, which with thousands of
 * them takes longer than opening a record.
 */
export function createRecordCache(maxBytes: number): RecordCache {
  const kept = new Map<number, Kept>();
  let oldest: Kept | null = null;
  let newest: Kept | null = null;
  let numBytes = 0;
  const unlink = (one: Kept): void => {
    if (one.older === null) oldest = one.newer;
    else one.older.newer = one.newer;
    if (one.newer === null) newest = one.older;
    else one.newer.older = one.older;
  };
  const append = (one: Kept): void => {
    one.older = newest;
    one.newer = null;
    if (newest === null) oldest = one;
    else newest.newer = one;
    newest = one;
  };
  const drop = (row: number): void => {
    const known = kept.get(row);
    if (known === undefined) return;
    kept.delete(row);
    unlink(known);
    numBytes -= known.bytes;
  };
  return {
    get(tenant, row) {
      const known = kept.get(row);
      if (known?.tenant !== tenant) return undefined;
      unlink(known);
      append(known);
      return known.record;
    },
    set(tenant, row, record, bytes) {
      drop(row);
      if (bytes > maxBytes / 16) return; // a few long records would evict all others
      const one: Kept = { tenant, row, record, bytes, older: null, newer: null };
      kept.set(row, one);
      append(one);
      numBytes += bytes;
      for (;;) {
        if (oldest === null || numBytes <= maxBytes) return;
        drop(oldest.row);
      }
    },
    drop,
    clear() {
      kept.clear();
      [oldest, newest] = [null, null];
      numBytes = 0;
    },
  };
}
