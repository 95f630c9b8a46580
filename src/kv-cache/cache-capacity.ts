import { copyPage, type PageMemory } from './page-memory.ts';
import type { PagePool, PagePoolOptions } from './types.ts';
import { createUnifiedPool } from './unified-pool.ts';

/** Tokens of a sequence that are packed together: rounding a page at a time would be a step's worth of overhead for each. */
export const PACK_TOKENS = 64;

/** What decides how long a sequence can be. */
export interface CapacityOptions {
  readonly memory: PageMemory;
  readonly numPages: number;
  readonly maxBatchTokens: number;
  readonly minTokens?: number;
}

/**
 * The pool, and the memory as it will be used. A slab must be spared for packed pages; where that leaves less than was asked for, a few
 * sequences of float pages are worth more than packing.
 */
export function openPool(
  options: CapacityOptions,
  tailTokens: number,
): { readonly memory: PageMemory; readonly pool: PagePool } {
  const { memory, numPages, minTokens = 0 } = options;
  const { pageTokens, pageBytes, packed } = memory;
  const open = (pages: PagePoolOptions['packed']): PagePool =>
    createUnifiedPool({
      numPages,
      pageBytes,
      packed: pages,
      copyPage: (tier, from, to) => copyPage(memory, tier, from, to),
    });
  if (packed === null) return { memory, pool: open(null) };
  const pool = open({ pageBytes: packed.pageBytes, unitBytes: packed.unitBytes });
  if (maxTokensOf(options, pool, tailTokens, 0) >= Math.min(minTokens, numPages * pageTokens)) return { memory, pool };
  return { memory: { ...memory, packed: null }, pool: open(null) };
}

/**
 * The longest sequence that always fits when it is alone beside reservations. With packing that is more than the float pages: all but its
 * tail and the tokens of one step are packed. Slabs are what counts, for a slab holds pages of one tier only: float pages that are n slabs
 * full, some of them packed, never take more than n + 1.
 */
export function maxTokensOf(
  { memory, numPages, maxBatchTokens }: CapacityOptions,
  pool: PagePool,
  tailTokens: number,
  numReservedSlabs: number,
): number {
  const { pageTokens, packed } = memory;
  const { slabPages } = pool;
  const numSlabs = pool.numSlabs - numReservedSlabs;
  if (packed === null || pool.numSlabs < 2) return (numPages - numReservedSlabs * slabPages.float) * pageTokens;
  // What is not packed yet: the tail, a group that is not complete, and a step.
  const numFloat = Math.ceil((tailTokens + PACK_TOKENS + maxBatchTokens) / pageTokens) + 1;
  const numPackedSlabs = numSlabs - Math.ceil(numFloat / slabPages.float);
  return Math.max((numSlabs - 1) * slabPages.float, numPackedSlabs * slabPages.packed) * pageTokens;
}
