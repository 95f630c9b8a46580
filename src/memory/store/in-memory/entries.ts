import type { JsonValue, MemoryRecord } from '../../types.ts';
import { checkReplaces, type CheckedPut } from '../check-put.ts';

export interface Entry {
  readonly row: number;
  readonly head: Omit<MemoryRecord, 'body'>;
  readonly bodyText: string;
  readonly sizeBytes: number;
}

/** Overhead of a record's objects. */
const ENTRY_BYTES = 500;

/** All records, the least recently used first. */
export interface Entries {
  readonly size: number;
  readonly sizeBytes: number;
  get(tenant: string, id: string): Entry | undefined;
  /** Appends it. */
  set(entry: Entry): void;
  touch(entry: Entry): void;
  delete(entry: Entry): void;
  of(tenant: string): Iterable<Entry>;
  all(): Iterable<Entry>;
}

export function createEntries(): Entries {
  const order = new Map<number, Entry>();
  const tenants = new Map<string, Map<string, Entry>>();
  let sizeBytes = 0;
  const remove = (entry: Entry): void => {
    if (!order.delete(entry.row)) return;
    sizeBytes -= entry.sizeBytes;
    const records = tenants.get(entry.head.tenant);
    records?.delete(entry.head.id);
    if (records?.size === 0) tenants.delete(entry.head.tenant);
  };
  return {
    get size() {
      return order.size;
    },
    get sizeBytes() {
      return sizeBytes;
    },
    get: (tenant, id) => tenants.get(tenant)?.get(id),
    set(entry) {
      const { tenant, id } = entry.head;
      const old = tenants.get(tenant)?.get(id);
      if (old !== undefined) remove(old);
      if (!tenants.has(tenant)) tenants.set(tenant, new Map());
      tenants.get(tenant)!.set(id, entry);
      order.set(entry.row, entry);
      sizeBytes += entry.sizeBytes;
    },
    touch(entry) {
      if (order.delete(entry.row)) order.set(entry.row, entry);
    },
    delete: remove,
    of: (tenant) => tenants.get(tenant)?.values() ?? [],
    all: () => order.values(),
  };
}

/** Approximate, with the overhead of its objects. */
const sizeOf = (bodyText: string, { vector, fields }: Pick<Entry['head'], 'vector' | 'fields'>): number =>
  ENTRY_BYTES + 2 * bodyText.length + (vector?.byteLength ?? 0) + 2 * JSON.stringify(fields).length;

/** The entry of a record as it was stored before, with its version and times. */
export function restoreEntry({ body, ...head }: MemoryRecord, row: number): Entry {
  const bodyText = JSON.stringify(body);
  return { row, head, bodyText, sizeBytes: sizeOf(bodyText, head) };
}

/** The entry after a put; throws `conflict` when another version was expected. */
export function replaceEntry(put: CheckedPut, old: Entry | undefined, row: number, nowMs: number): Entry {
  const { id, tenant, kind, expiresMs, fields, vector, space, bodyText } = put;
  checkReplaces(put, old?.head);
  const createdMs = put.createdMs ?? old?.head.createdMs ?? nowMs;
  const head = {
    id,
    tenant,
    kind,
    createdMs,
    updatedMs: nowMs,
    expiresMs,
    version: (old?.head.version ?? 0) + 1,
    fields,
    vector,
    space,
  };
  return { row: old?.row ?? row, head, bodyText, sizeBytes: sizeOf(bodyText, head) };
}

export function toRecord({ head, bodyText }: Entry, withVector = true): MemoryRecord {
  const body = JSON.parse(bodyText) as JsonValue;
  return { ...head, fields: { ...head.fields }, body, vector: withVector ? (head.vector?.slice() ?? null) : null };
}
