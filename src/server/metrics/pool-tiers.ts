import type { EngineStats } from '../../runtime/lower-layers.ts';

/** A part of the pool, and the bytes in it. */
export interface PoolTier {
  /** `float` and `packed`: pages; `slack`: what whole slabs take beyond what is in them. */
  readonly tier: 'float' | 'packed' | 'adapters' | 'slack';
  readonly sizeBytes: number;
  /** Null: it is not made of pages. */
  readonly numPages: number | null;
}

/** What the bytes of a pool that are in use are used for; they add up to `usedBytes`. */
export function poolTiersOf({ cache }: EngineStats): readonly PoolTier[] {
  const { tail, packed, adapterBytes, usedBytes } = cache;
  const known = tail.sizeBytes + packed.sizeBytes + adapterBytes;
  return [
    { tier: 'float', sizeBytes: tail.sizeBytes, numPages: tail.numPages },
    { tier: 'packed', sizeBytes: packed.sizeBytes, numPages: packed.numPages },
    { tier: 'adapters', sizeBytes: adapterBytes, numPages: null },
    { tier: 'slack', sizeBytes: Math.max(0, usedBytes - known), numPages: null },
  ];
}
