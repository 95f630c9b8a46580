import type { ArenaRange } from '../contract.ts';

/** The same bytes as sorted ranges that neither touch nor overlap. */
export function mergeRanges(ranges: readonly ArenaRange[]): ArenaRange[] {
  const sorted = ranges.filter(({ sizeBytes }) => sizeBytes > 0).toSorted((a, b) => a.offset - b.offset);
  const merged: { offset: number; sizeBytes: number }[] = [];
  for (const { offset, sizeBytes } of sorted) {
    const last = merged.at(-1);
    if (last !== undefined && offset <= last.offset + last.sizeBytes) {
      last.sizeBytes = Math.max(last.sizeBytes, offset + sizeBytes - last.offset);
    } else merged.push({ offset, sizeBytes });
  }
  return merged;
}
