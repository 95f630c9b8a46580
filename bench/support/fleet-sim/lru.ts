/** The least recently used of a fixed number of whole numbers, in typed arrays: a fleet has thousands of these. */
export interface Lru {
  has(key: number): boolean;
  /** Makes `key` the most recent; returns the number that was dropped for it, or -1. */
  touch(key: number): number;
  forEach(visit: (key: number) => void): void;
  clear(): void;
  readonly size: number;
}

/** Keys are 0 to 2^31 - 1. */
export function createLru(capacity: number): Lru {
  let tableSize = 4;
  while (tableSize < 2 * capacity) tableSize *= 2;
  const mask = tableSize - 1;
  /** Open addressing: the entry of each place, -1 for none. */
  const table = new Int32Array(tableSize).fill(-1);
  const keys = new Int32Array(capacity);
  const newer = new Int32Array(capacity);
  const older = new Int32Array(capacity);
  let size = 0;
  let newest = -1;
  let oldest = -1;

  const placeOf = (key: number): number => {
    let hash = Math.imul(key ^ (key >>> 15), 0x2c1b3c6d);
    hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39);
    return (hash ^ (hash >>> 15)) & mask;
  };

  /** The place of the key, or the free place where it would be. */
  function locate(key: number): number {
    let place = placeOf(key);
    while (table[place] !== -1 && keys[table[place]!] !== key) place = (place + 1) & mask;
    return place;
  }

  /** Later keys of the same chain move into the gap: a search ends at a free place. */
  function removeAt(place: number): void {
    let gap = place;
    for (let next = (gap + 1) & mask; table[next] !== -1; next = (next + 1) & mask) {
      const wanted = placeOf(keys[table[next]!]!);
      if (((next - wanted) & mask) < ((next - gap) & mask)) continue;
      table[gap] = table[next]!;
      gap = next;
    }
    table[gap] = -1;
  }

  function unlink(entry: number): void {
    if (newer[entry] === -1) newest = older[entry]!;
    else older[newer[entry]!] = older[entry]!;
    if (older[entry] === -1) oldest = newer[entry]!;
    else newer[older[entry]!] = newer[entry]!;
  }

  function pushNewest(entry: number): void {
    newer[entry] = -1;
    older[entry] = newest;
    if (newest !== -1) newer[newest] = entry;
    newest = entry;
    if (oldest === -1) oldest = entry;
  }

  return {
    has: (key) => table[locate(key)] !== -1,
    touch(key) {
      const entry = table[locate(key)]!;
      if (entry !== -1) {
        if (entry === newest) return -1;
        unlink(entry);
        pushNewest(entry);
        return -1;
      }
      let dropped = -1;
      let free = size;
      if (size === capacity) {
        free = oldest;
        dropped = keys[free]!;
        removeAt(locate(dropped));
        unlink(free);
      } else size++;
      keys[free] = key;
      table[locate(key)] = free; // after the removal, which may have moved the place
      pushNewest(free);
      return dropped;
    },
    forEach(visit) {
      for (let entry = newest; entry !== -1; entry = older[entry]!) visit(keys[entry]!);
    },
    clear() {
      table.fill(-1);
      size = 0;
      newest = -1;
      oldest = -1;
    },
    get size() {
      return size;
    },
  };
}
