import type { PageMemory } from './page-memory.ts';
import type { PagePool, PagePoolOptions } from './types.ts';
import { createUnifiedPool } from './unified-pool.ts';

/** Tokens of a sequence that are packed together: packing page by page would cost a step's overhead each time. */
export const PACK_TOKENS = 64;

/** Inputs of the longest possible sequence. */
export interface CapacityOptions {
  readonly memory: PageMemory;
  readonly numPages: number;
  readonly maxBatchTokens: number;
  readonly minTokens?: number;
  /** Called when the last reference to a page is gone. */
  readonly onFree?: PagePoolOptions['onFree'];
}

/**
 * The pool, and the memory it uses. Packed pages require a slab of their own; if that leaves less than `minTokens`,
 * packing is disabled.
 */
export function openPool(
  options: CapacityOptions,
  tailTokens: number,
): { readonly memory: PageMemory; readonly pool: PagePool } {
  const { memory, numPages, minTokens = 0, onFree } = options;
  const { pageTokens, pageBytes, packed } = memory;
  const open = (pages: PagePoolOptions['packed']): PagePool =>
    createUnifiedPool({
      numPages,
      pageBytes,
      packed: pages,
      copyPage: (tier, from, to) => memory.copyPage(tier, from, to),
      ...(onFree === undefined ? {} : { onFree }),
    });
  if (packed === null) return { memory, pool: open(null) };
  const pool = open({ pageBytes: packed.pageBytes, unitBytes: packed.unitBytes });
  if (maxTokensOf(options, pool, tailTokens, 0) >= Math.min(minTokens, numPages * pageTokens)) return { memory, pool };
  return { memory: { ...memory, packed: null }, pool: open(null) };
}

/**
 * The longest sequence that always fits when it runs alone beside reservations. With packing this exceeds the float pages:
 * all but its tail and the tokens of one step are packed. Counted in slabs, because a slab holds pages of one tier: n slabs
 * of float pages, partly packed, take at most n + 1 slabs.
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
  // Not packed yet: the tail, an incomplete group and one step.
  const numFloat = Math.ceil((tailTokens + PACK_TOKENS + maxBatchTokens) / pageTokens) + 1;
  const numPackedSlabs = numSlabs - Math.ceil(numFloat / slabPages.float);
  return Math.max((numSlabs - 1) * slabPages.float, numPackedSlabs * slabPages.packed) * pageTokens;
}
