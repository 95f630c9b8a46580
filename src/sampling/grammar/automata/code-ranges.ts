/** Sorted, disjoint, non-adjacent ranges of code points: lo, hi, lo, hi, … (both inclusive). */
export type CodeRanges = readonly number[];

export const MAX_CODE_POINT = 0x10ffff;
// Lone surrogates are not characters: UTF-8 cannot encode them, and escapes that spell one are rejected.
const FIRST_SURROGATE = 0xd800;
const LAST_SURROGATE = 0xdfff;

/** Every character. */
export const ANY: CodeRanges = [0, FIRST_SURROGATE - 1, LAST_SURROGATE + 1, MAX_CODE_POINT];

/** Sorts and merges pairs given in any order, without surrogates. */
export function normalizeRanges(pairs: readonly number[]): CodeRanges {
  const sorted: [number, number][] = [];
  for (let i = 0; i < pairs.length; i += 2) if (pairs[i]! <= pairs[i + 1]!) sorted.push([pairs[i]!, pairs[i + 1]!]);
  sorted.sort((a, b) => a[0] - b[0]);
  const merged: number[] = [];
  for (const [lo, hi] of sorted) {
    const last = merged.length - 1;
    if (last > 0 && lo <= merged[last]! + 1) merged[last] = Math.max(merged[last]!, hi);
    else merged.push(lo, hi);
  }
  return intersectRanges(merged, ANY);
}

export function intersectRanges(a: CodeRanges, b: CodeRanges): CodeRanges {
  const result: number[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const lo = Math.max(a[i]!, b[j]!);
    const hi = Math.min(a[i + 1]!, b[j + 1]!);
    if (lo <= hi) result.push(lo, hi);
    if (a[i + 1]! < b[j + 1]!) i += 2;
    else j += 2;
  }
  return result;
}

export function complementRanges(ranges: CodeRanges): CodeRanges {
  const gaps: number[] = [];
  let next = 0;
  for (let i = 0; i < ranges.length; i += 2) {
    gaps.push(next, ranges[i]! - 1);
    next = ranges[i + 1]! + 1;
  }
  gaps.push(next, MAX_CODE_POINT);
  return normalizeRanges(gaps);
}
