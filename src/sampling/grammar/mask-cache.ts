/** Masks by key, evicting the least recently used. */
export interface MaskCache {
  get(key: string): Uint32Array | undefined;
  /** Adds a mask; older ones make room for it, which may be more than all. */
  add(key: string, mask: Uint32Array, maxBytes: number): void;
}

export function createMaskCache(): MaskCache {
  const masks = new Map<string, Uint32Array>(); // least recently used first
  let sizeBytes = 0;
  const cost = (key: string, mask: Uint32Array): number => mask.byteLength + 2 * key.length;
  return {
    get(key) {
      const mask = masks.get(key);
      if (mask !== undefined) {
        masks.delete(key);
        masks.set(key, mask);
      }
      return mask;
    },
    add(key, mask, maxBytes) {
      masks.set(key, mask);
      sizeBytes += cost(key, mask);
      for (const [oldest, other] of masks) {
        if (sizeBytes <= maxBytes || oldest === key) break;
        masks.delete(oldest);
        sizeBytes -= cost(oldest, other);
      }
    },
  };
}
