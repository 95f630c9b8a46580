import type { MemoryRecord } from '../../types.ts';
import type { Tenant } from './tenants.ts';

/** Records that were opened, without their vectors: reading and unsealing them again is most of what a search costs. */
export interface RecordCache {
  get(tenant: Tenant, row: number): MemoryRecord | undefined;
  /** `bytes`: about what it takes. */
  set(tenant: Tenant, row: number, record: MemoryRecord, bytes: number): void;
  /** After a commit: what is there is not what was read. */
  drop(row: number): void;
  clear(): void;
}

interface Kept {
  /** As it was known then: erased and made anew, it is another one, and so may the row be. */
  readonly tenant: Tenant;
  readonly record: MemoryRecord;
  readonly bytes: number;
}

/** What was used last is kept longest. */
export function createRecordCache(maxBytes: number): RecordCache {
  const kept = new Map<number, Kept>();
  let numBytes = 0;
  const drop = (row: number): void => {
    numBytes -= kept.get(row)?.bytes ?? 0;
    kept.delete(row);
  };
  return {
    get(tenant, row) {
      const known = kept.get(row);
      if (known?.tenant !== tenant) return undefined;
      kept.delete(row);
      kept.set(row, known);
      return known.record;
    },
    set(tenant, row, record, bytes) {
      drop(row);
      if (bytes > maxBytes / 16) return; // a few long ones would push all others out
      kept.set(row, { tenant, record, bytes });
      numBytes += bytes;
      for (const oldest of kept.keys()) {
        if (numBytes <= maxBytes) break;
        drop(oldest);
      }
    },
    drop,
    clear() {
      kept.clear();
      numBytes = 0;
    },
  };
}
