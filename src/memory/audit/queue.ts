import type { AuditInput } from '../schemas/audit.ts';
import type { PreparedEntry } from './appender.ts';

export interface QueuedEntry {
  input: AuditInput;
  /** The response's embedding, where it was not there yet; it never rejects. */
  later?: Promise<Float32Array | null>;
  readonly bytes: number;
  /** Entries of the tenant that found no place between the one before and this one. */
  readonly numDroppedBefore: number;
  /** Made when it is first tried, and kept for when it is tried again. Null: it could not be made. */
  prepared?: PreparedEntry | null;
}

/** Entries by tenant, in order; tenants take turns, so that one whose store fails does not hold up the others. */
export interface AuditQueue {
  readonly size: number;
  readonly bytes: number;
  canPush(bytes: number): boolean;
  push(tenant: string, item: QueuedEntry): void;
  /** The oldest of the tenant whose turn it is; they stay until `remove`. */
  peek(max: number): { tenant: string; items: readonly QueuedEntry[] } | null;
  remove(tenant: string, count: number): void;
  /** Puts a tenant behind the others. */
  rotate(tenant: string): void;
}

export function createAuditQueue(limits: { maxEntries: number; maxBytes: number }): AuditQueue {
  const lists = new Map<string, QueuedEntry[]>();
  let size = 0;
  let bytes = 0;
  const rotate = (tenant: string): void => {
    const list = lists.get(tenant);
    lists.delete(tenant);
    if (list !== undefined && list.length > 0) lists.set(tenant, list);
  };
  return {
    get size() {
      return size;
    },
    get bytes() {
      return bytes;
    },
    canPush: (added) => size < limits.maxEntries && bytes + added <= limits.maxBytes,
    push(tenant, item) {
      const list = lists.get(tenant);
      if (list === undefined) lists.set(tenant, [item]);
      else list.push(item);
      size++;
      bytes += item.bytes;
    },
    peek(max) {
      const first = lists.entries().next();
      return first.done ? null : { tenant: first.value[0], items: first.value[1].slice(0, max) };
    },
    remove(tenant, count) {
      for (const item of lists.get(tenant)!.splice(0, count)) {
        size--;
        bytes -= item.bytes;
      }
      rotate(tenant);
    },
    rotate,
  };
}
