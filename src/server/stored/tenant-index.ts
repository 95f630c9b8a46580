import type { StoredHead } from '../../runtime/lower-layers.ts';
import type { StoredEntry, StoredType } from './types.ts';

/** An entry with the figures that the limits need. */
export interface IndexEntry extends StoredEntry {
  readonly numBytes: number;
  /** Milliseconds since 1970. */
  readonly expiresMs: number;
}

/** The objects of a tenant in the order in which they were written: the first one expires first. */
export interface TenantIndex {
  readonly entries: ReadonlyMap<string, IndexEntry>;
  readonly numBytes: number;
  /** When it was read from the records, by the monotonic clock; null: not yet, or that failed. */
  readMs: number | null;
  /** Adds an entry at the end. */
  add(entry: IndexEntry): void;
  /** False: not found. */
  remove(id: string): boolean;
  /** Replaces all entries. */
  reset(entries: readonly IndexEntry[]): void;
}

export function createTenantIndex(): TenantIndex {
  const entries = new Map<string, IndexEntry>();
  let numBytes = 0;
  const remove = (id: string): boolean => {
    numBytes -= entries.get(id)?.numBytes ?? 0;
    return entries.delete(id);
  };
  const add = (entry: IndexEntry): void => {
    remove(entry.id);
    entries.set(entry.id, entry);
    numBytes += entry.numBytes;
  };
  return {
    entries,
    get numBytes() {
      return numBytes;
    },
    readMs: null,
    add,
    remove,
    reset(all) {
      entries.clear();
      numBytes = 0;
      all.forEach(add);
    },
  };
}

export function toHead({ id, owners, expiresMs, ...about }: IndexEntry): StoredHead {
  return { id, owners, expiresMs, about: { ...about } };
}

const TYPES: ReadonlySet<string> = new Set<StoredType>(['response', 'chat.completion', 'conversation']);

/** Null: a type that this version does not have. */
export function entryOf({ id, owners, expiresMs, about }: StoredHead): IndexEntry | null {
  const entry = { id, owners, expiresMs, ...(about as object) } as IndexEntry;
  return TYPES.has(entry.type) && Number.isFinite(entry.numBytes) ? entry : null;
}
