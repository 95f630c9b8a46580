import type { Columns } from './vector-space.ts';

/** States of a slot: free, in use, deleted but still in the graph, deleted and leaving it. */
export const FREE = 0;
export const LIVE = 1;
export const DEAD = 2;
export const LEAVING = 3;

/**
 * Slots by key. Equal vectors share a slot: repeated texts are common, and hundreds of equal points would use up each other's
 * links.
 */
export interface SlotTable {
  /** Live keys. */
  readonly size: number;
  /** Slots ever used; all others are free. */
  readonly end: number;
  readonly numLive: number;
  /** Deleted, still in the graph. */
  readonly numDead: number;
  slotOf(key: number): number | undefined;
  /** Keys of a live slot, in order of insertion. */
  keysOf(slot: number): readonly number[];
  /** A live slot whose vector may be equal. */
  slotByHash(hash: number): number | undefined;
  /** The slot for a new vector; -1: full. */
  nextFree(capacity: number): number;
  /** Takes the slot from `nextFree`. */
  take(slot: number, hash: number, key: number): void;
  attach(slot: number, key: number): void;
  /** Removes a key; returns its slot if that is now `DEAD`, otherwise -1. */
  detach(key: number): number;
  /** Makes a deleted slot free. */
  release(slot: number): void;
  /** Further keys of shared slots: [slot, key, slot, key, …]. */
  exportTwins(): Float64Array<ArrayBuffer>;
  /** Reads the columns. */
  restore(end: number, twins: Float64Array): void;
}

export function createSlotTable(columns: () => Columns, onChange: (slot: number) => void): SlotTable {
  /** Built on first use: searches do not need it, and it takes a tenth of the time of opening. */
  let made: { readonly slots: Map<number, number>; readonly hashes: Map<number, number> } | null = null;
  const twins = new Map<number, Set<number>>();
  let free: number[] = [];
  let [end, numLive, numDead, numTwins] = [0, 0, 0, 0];

  const tables = (): NonNullable<typeof made> => {
    if (made !== null) return made;
    const { keys, states, hashes: hashColumn } = columns();
    const slots = new Map<number, number>();
    const hashes = new Map<number, number>();
    for (let slot = end - 1; slot >= 0; slot--) {
      if (states[slot] !== LIVE) continue;
      slots.set(keys[slot]!, slot);
      hashes.set(hashColumn[slot]!, slot);
    }
    for (const [slot, others] of twins) for (const key of others) slots.set(key, slot);
    return (made = { slots, hashes });
  };

  const forgetHash = (slot: number): void => {
    const hash = columns().hashes[slot]!;
    const { hashes } = tables();
    if (hashes.get(hash) === slot) hashes.delete(hash);
  };

  const addTwin = (slot: number, key: number): void => {
    const others = twins.get(slot);
    if (others === undefined) twins.set(slot, new Set([key]));
    else others.add(key);
    numTwins++;
  };

  return {
    get size() {
      return numLive + numTwins;
    },
    get end() {
      return end;
    },
    get numLive() {
      return numLive;
    },
    get numDead() {
      return numDead;
    },
    slotOf: (key) => tables().slots.get(key),
    keysOf: (slot) => [columns().keys[slot]!, ...(twins.get(slot) ?? [])],
    slotByHash: (hash) => tables().hashes.get(hash),
    nextFree: (capacity) => free.at(-1) ?? (end < capacity ? end : -1),
    take(slot, hash, key) {
      const { slots, hashes } = tables();
      if (free.at(-1) === slot) free.pop();
      else end = slot + 1;
      const { hashes: hashColumn, states, keys } = columns();
      hashColumn[slot] = hash;
      states[slot] = LIVE;
      keys[slot] = key;
      hashes.set(hash, slot);
      slots.set(key, slot);
      numLive++;
      onChange(slot);
    },
    attach(slot, key) {
      const { slots } = tables();
      addTwin(slot, key);
      slots.set(key, slot);
      onChange(slot);
    },
    detach(key) {
      const { slots } = tables();
      const slot = slots.get(key)!;
      slots.delete(key);
      onChange(slot);
      const { keys, states } = columns();
      const others = twins.get(slot);
      if (others === undefined) {
        forgetHash(slot);
        keys[slot] = 0;
        states[slot] = DEAD;
        numLive--;
        numDead++;
        return slot;
      }
      const next = keys[slot] === key ? others.values().next().value! : key;
      if (keys[slot] === key) keys[slot] = next;
      others.delete(next);
      numTwins--;
      if (others.size === 0) twins.delete(slot);
      return -1;
    },
    release(slot) {
      columns().states[slot] = FREE;
      numDead--;
      free.push(slot);
      onChange(slot);
    },
    exportTwins() {
      const pairs = [...twins].flatMap(([slot, others]) => [...others].flatMap((key) => [slot, key]));
      return Float64Array.from(pairs);
    },
    restore(newEnd, pairs) {
      made = null;
      twins.clear();
      free = [];
      [end, numLive, numDead, numTwins] = [newEnd, 0, 0, 0];
      const { states } = columns();
      for (let slot = end - 1; slot >= 0; slot--) {
        const state = states[slot]!;
        if (state === FREE) free.push(slot);
        else if (state !== LIVE) {
          states[slot] = DEAD;
          numDead++;
        } else numLive++;
      }
      for (let i = 0; i + 1 < pairs.length; i += 2) {
        const [slot, key] = [pairs[i]!, pairs[i + 1]!];
        addTwin(slot, key);
      }
    },
  };
}
