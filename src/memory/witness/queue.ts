import type { WitnessInput } from '../schemas/witness.ts';
import type { PreparedWitness } from './appender.ts';

export interface QueuedWitness {
  input: WitnessInput;
  /** The response's embedding, where it was not there yet; it never rejects. */
  later?: Promise<Float32Array | null>;
  readonly bytes: number;
  /** Entries of the tenant that found no place between the one before and this one. */
  readonly numDroppedBefore: number;
  /** Made when it is first tried, and kept for when it is tried again. Null: it could not be made. */
  prepared?: PreparedWitness | null;
}

/** Entries by tenant, in order; tenants take turns, so that one whose store fails does not hold up the others. */
export interface WitnessQueue {
  readonly size: number;
  readonly bytes: number;
  canPush(bytes: number): boolean;
  push(tenant: string, item: QueuedWitness): void;
  /** The oldest of the tenant whose turn it is; they stay until `remove`. */
  peek(max: number): { tenant: string; items: readonly QueuedWitness[] } | null;
  remove(tenant: string, count: number): void;
  /** Puts a tenant behind the others. */
  rotate(tenant: string): void;
}

export function createWitnessQueue(limits: { maxEntries: number; maxBytes: number }): WitnessQueue {
  const lists = new Map<string, QueuedWitness[]>();
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
