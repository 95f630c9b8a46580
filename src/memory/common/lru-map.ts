/** A map that forgets what was unused for longest. */
export interface LruMap<V> {
  readonly size: number;
  get(key: string): V | undefined;
  /** Without counting as a use. */
  peek(key: string): V | undefined;
  set(key: string, value: V): void;
  /** Without counting as a use; the key must be there. */
  replace(key: string, value: V): void;
  delete(key: string): void;
  /** A copy: the map may change under the loop. */
  entries(): [string, V][];
}

/** A `Map` remembers the order of insertion, so using an entry puts it in anew, and the first is the one to forget. */
export function createLruMap<V>(capacity: number): LruMap<V> {
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
    peek: (key) => map.get(key),
    set(key, value) {
      map.delete(key);
      map.set(key, value);
      if (map.size > capacity) map.delete(map.keys().next().value!);
    },
    replace(key, value) {
      if (map.has(key)) map.set(key, value);
    },
    delete: (key) => void map.delete(key),
    entries: () => [...map.entries()],
  };
}
