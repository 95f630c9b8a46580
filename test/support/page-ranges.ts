import { assert } from '../../src/core/errors.ts';
import type { KvPageStore, StepBatch } from '../../src/models/types.ts';

/** The bytes of a step's pages in both tiers; throws if two pages overlap or one leaves the budget. */
export function checkPageRanges(batch: StepBatch, pages: KvPageStore, numPages: number): number {
  const ids = new Set(batch.sequences.flatMap(({ pageIds }) => Array.from(pageIds)));
  const ranges = Array.from(ids, (id) => {
    const start = id >= 0 ? id * pages.pageBytes : ~id * pages.packed!.unitBytes;
    return { id, start, end: start + (id >= 0 ? pages.pageBytes : pages.packed!.pageBytes) };
  });
  ranges.sort((a, b) => a.start - b.start);
  let end = 0;
  for (const range of ranges) {
    assert(range.start >= end, `page ${range.id} begins at byte ${range.start}, the one before ends at ${end}`);
    end = range.end;
  }
  assert(end <= numPages * pages.pageBytes, `pages end at byte ${end} of ${numPages * pages.pageBytes}`);
  return ranges.reduce((sum, range) => sum + range.end - range.start, 0);
}
