/** A map that forgets what was unused for longest. */
export interface LruMap<V> {
  readonly size: number;
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
  clear(): void;
  entries(): IterableIterator<[string, V]>;
}

/** A `Map` remembers the order of insertion, so using an entry puts it in anew, and the first is the one to forget. */
export function createLruMap<V>(capacity: number, onEvict?: (key: string, value: V) => void): LruMap<V> {
  const map = new Map<string, V>();
  return {
    get size() {
      return map.size;
    },
    get(key) {
      const value = map.get(key);
      if (value === undefined) return undefined;
      map.delete(key);
      map.set(key, value);
      return value;
    },
    set(key, value) {
      map.delete(key);
      map.set(key, value);
      if (map.size <= capacity) return;
      const [oldest] = map.entries();
      map.delete(oldest![0]);
      onEvict?.(oldest![0], oldest![1]);
    },
    delete: (key) => void map.delete(key),
    clear: () => map.clear(),
    entries: () => map.entries(),
  };
}
