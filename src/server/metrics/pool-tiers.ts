import type { EngineStats } from '../../runtime/lower-layers.ts';

/** Bytes of the page pool in one tier. */
export interface PoolTier {
  /** `float` and `packed`: pages; `drafts`: earlier answers that later ones are drafted from; `slack`: unused bytes of allocated slabs. */
  readonly tier: 'float' | 'packed' | 'adapters' | 'drafts' | 'slack';
  readonly sizeBytes: number;
  /** Null: not pages. */
  readonly numPages: number | null;
}

/** The tiers of a page pool; their bytes add up to `usedBytes`. */
export function poolTiersOf({ cache, draftBytes }: EngineStats): readonly PoolTier[] {
  const { tail, packed, adapterBytes, usedBytes } = cache;
  const contentBytes = tail.sizeBytes + packed.sizeBytes + adapterBytes + draftBytes;
  return [
    { tier: 'float', sizeBytes: tail.sizeBytes, numPages: tail.numPages },
    { tier: 'packed', sizeBytes: packed.sizeBytes, numPages: packed.numPages },
    { tier: 'adapters', sizeBytes: adapterBytes, numPages: null },
    { tier: 'drafts', sizeBytes: draftBytes, numPages: null },
    { tier: 'slack', sizeBytes: Math.max(0, usedBytes - contentBytes), numPages: null },
  ];
}
