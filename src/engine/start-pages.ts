import type { PagePlan } from './plan-pages.ts';

/**
 * The pages to load a model with. A model is faster without space for cached prefixes than with the slower addresses of a large
 * arena, so default pages are given up for them. `sizeOf`: the bytes of the model with that many pages.
 */
export function startPages(
  { numPages, leastPages }: PagePlan,
  sizeOf: (numPages: number) => number,
  fastArenaBytes = Infinity,
): number {
  if (leastPages === numPages || sizeOf(numPages) <= fastArenaBytes) return numPages;
  return sizeOf(leastPages) <= fastArenaBytes ? leastPages : numPages;
}
