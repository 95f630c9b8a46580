/** Below this, slabs get more pages: an adapter in a reservation is contiguous only within a slab. */
const TARGET_BYTES = 2 * 1024 * 1024;
/** Few enough for an instant search, many enough for packed pages of any size to fill a slab well. */
const MAX_LEAST_PAGES = 512;

/**
 * Float pages per slab that minimize waste: what packed pages leave at the end of each slab, and a half-filled slab per
 * tier.
 */
export function chooseSlabPages(numPages: number, pageBytes: number, packedBytes: number | null): number {
  const target = Math.min(MAX_LEAST_PAGES, Math.max(8, Math.floor(TARGET_BYTES / pageBytes)));
  // At least 16 slabs where that leaves a choice, always 4: `usedBytes` changes in steps of a slab.
  const least = Math.max(1, Math.min(target, Math.floor(numPages / 16)));
  const most = Math.max(1, Math.min(4 * target, Math.floor(numPages / 4)));
  let best = least;
  let bestLoss = Infinity;
  for (let slabPages = least; slabPages <= most; slabPages++) {
    const wasted = packedBytes === null ? 0 : ((slabPages * pageBytes) % packedBytes) / (slabPages * pageBytes);
    const loss = wasted + slabPages / numPages;
    if (loss < bestLoss) {
      best = slabPages;
      bestLoss = loss;
    }
  }
  return best;
}
