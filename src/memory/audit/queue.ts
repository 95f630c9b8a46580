import type { AuditInput } from '../schemas/audit.ts';
import type { PreparedEntry } from './build-entries.ts';

export interface QueuedEntry {
  /** Set by the first attempt. */
  id?: string;
  input: AuditInput;
  /** Computes further parts. */
  later?: () => Promise<Partial<AuditInput> | null>;
  readonly bytes: number;
  /** When it was enqueued. */
  readonly takenMs: number;
  /** Entries of the tenant dropped between the previous one and this one. */
  readonly numDroppedBefore: number;
  /** Set by the first attempt and kept for the next. Null: invalid. */
  prepared?: PreparedEntry | null;
}

/** Entries by tenant, in order. Tenants take turns, so that one whose writes fail does not block the others. */
export interface AuditQueue {
  readonly size: number;
  readonly bytes: number;
  canPush(bytes: number): boolean;
  /** When the oldest entry was enqueued. */
  oldestMs(): number;
  push(tenant: string, item: QueuedEntry): void;
  /** The oldest entries of the tenant whose turn it is; they stay until `remove`. */
  peek(max: number): { tenant: string; items: readonly QueuedEntry[] } | null;
  remove(tenant: string, count: number): void;
  /** Ends a tenant's turn. */
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
    oldestMs: () => Math.min(...[...lists.values()].map(([first]) => first!.takenMs)),
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
