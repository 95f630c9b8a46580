/** A map that evicts the least recently used entry. */
export interface LruMap<V> {
  readonly size: number;
  get(key: string): V | undefined;
  /** Does not count as a use. */
  peek(key: string): V | undefined;
  set(key: string, value: V): void;
  /** Does not count as a use, and does nothing for a missing key. */
  replace(key: string, value: V): void;
  delete(key: string): void;
  /** A copy: the map may change during a loop over it. */
  entries(): [string, V][];
}

/** A `Map` keeps the order of insertion: a used entry is inserted again, and the first one is the oldest. */
export function createLruMap<V>(capacity: number, onEvict: (value: V) => void = () => {}): LruMap<V> {
  const map = new Map<string, V>();
  /** The last key: moving it again would change nothing. */
  let newest: string | null = null;
  return {
    get size() {
      return map.size;
    },
    get(key) {
      const value = map.get(key);
      if (value === undefined || key === newest) return value;
      map.delete(key);
      map.set(key, value);
      newest = key;
      return value;
    },
    peek: (key) => map.get(key),
    set(key, value) {
      map.delete(key);
      map.set(key, value);
      newest = key;
      if (map.size <= capacity) return;
      const [oldest, evicted] = map.entries().next().value!;
      map.delete(oldest);
      onEvict(evicted);
    },
    replace(key, value) {
      if (map.has(key)) map.set(key, value);
    },
    delete: (key) => void map.delete(key),
    entries: () => [...map.entries()],
  };
}
