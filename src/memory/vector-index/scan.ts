import type { BestHits } from './best-hits.ts';
import { canNarrow, narrow } from './narrow.ts';
import { LIVE, type SlotTable } from './slot-table.ts';
import type { Metric } from './types.ts';
import type { VectorSpace } from './vector-space.ts';

export function toScore(metric: Metric, distance: number): number {
  if (metric === 'l2') return -distance;
  return metric === 'cosine' ? Math.max(-1, Math.min(1, distance)) : distance;
}

function compare({ pack, workAt, exactTable, finish }: VectorSpace, numVectors: number, hasIds: boolean): void {
  pack.distances({
    ...exactTable,
    query: workAt.query,
    ids: hasIds ? workAt.ids : null,
    numVectors,
    out: workAt.scores,
  });
  finish();
}

/** Compares the query with all slots. */
export function scanAll(space: VectorSpace, metric: Metric, slots: SlotTable, best: BestHits): void {
  const { scores, ids } = space.work;
  const { states } = space.columns;
  if (slots.end === 0) return;
  const isNarrow = canNarrow(space, metric, slots.end, best.k);
  const count = isNarrow ? narrow(space, { k: best.k, count: slots.end, ids: false }) : slots.end;
  compare(space, count, isNarrow);
  // Most are below the floor, and cost only this comparison.
  for (let i = 0, { floor } = best; i < count; i++) {
    const score = toScore(metric, scores[i]!);
    const slot = isNarrow ? ids[i]! : i;
    if (score < floor || states[slot] !== LIVE) continue;
    for (const key of slots.keysOf(slot)) best.offer(key, score);
    ({ floor } = best);
  }
}

/** Compares the query with some slots. */
export function scanSome(
  space: VectorSpace,
  metric: Metric,
  pairs: Iterable<readonly [slot: number, key: number]>,
  best: BestHits,
): void {
  const { work } = space;
  const most = work.ids.length;
  const keys: number[] = [];
  const flush = (): void => {
    let count = keys.length;
    if (count === 0) return;
    if (canNarrow(space, metric, count, best.k)) {
      count = narrow(space, { k: best.k, count, ids: true }, (from, to) => (keys[to] = keys[from]!));
    }
    compare(space, count, true);
    for (let i = 0; i < count; i++) best.offer(keys[i]!, toScore(metric, work.scores[i]!));
    keys.length = 0;
  };
  for (const [slot, key] of pairs) {
    work.ids[keys.length] = slot;
    keys.push(key);
    if (keys.length === most) flush();
  }
  flush();
}
