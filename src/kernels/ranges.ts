import type { ArenaRange } from './contract.ts';

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

/** The bytes of a range that none of the others has; those are sorted and do not overlap. */
export function subtractRanges(range: ArenaRange, others: readonly ArenaRange[]): ArenaRange[] {
  const left: ArenaRange[] = [];
  const end = range.offset + range.sizeBytes;
  let start = range.offset;
  for (const other of others) {
    if (start >= end || other.offset >= end) break;
    if (other.offset > start) left.push({ offset: start, sizeBytes: other.offset - start });
    start = Math.max(start, other.offset + other.sizeBytes);
  }
  if (start < end) left.push({ offset: start, sizeBytes: end - start });
  return left;
}

export const isSameRanges = (a: readonly ArenaRange[], b: readonly ArenaRange[]): boolean =>
  a.length === b.length &&
  a.every(({ offset, sizeBytes }, i) => offset === b[i]!.offset && sizeBytes === b[i]!.sizeBytes);

export const overlaps = (a: ArenaRange, b: ArenaRange): boolean =>
  a.offset < b.offset + b.sizeBytes && b.offset < a.offset + a.sizeBytes;
