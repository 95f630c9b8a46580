import { type BestHits } from './best-hits.ts';
import type { Metric } from './types.ts';
import type { VectorSpace } from './vector-space.ts';

/** Scores as callers see them. */
export function toScore(metric: Metric, distance: number): number {
  if (metric === 'l2') return -distance;
  return metric === 'cosine' ? Math.max(-1, Math.min(1, distance)) : distance;
}

/** Compares the query in the work arrays with all slots before `end`; results are in `work.scores`, by slot. */
export function scanAll(space: VectorSpace, end: number): Float32Array {
  const { pack, workAt, work, exactTable, finish } = space;
  if (end > 0) {
    pack.distances({ ...exactTable, query: workAt.query, ids: null, numVectors: end, out: workAt.scores });
    finish();
  }
  return work.scores;
}

/** Compares it with some slots, and offers each with its key. */
export function scanSome(
  space: VectorSpace,
  metric: Metric,
  pairs: Iterable<readonly [slot: number, key: number]>,
  best: BestHits,
): void {
  const { pack, workAt, work, exactTable, finish } = space;
  const most = work.ids.length;
  let keys: number[] = [];
  const flush = (): void => {
    if (keys.length === 0) return;
    const numVectors = keys.length;
    pack.distances({ ...exactTable, query: workAt.query, ids: workAt.ids, numVectors, out: workAt.scores });
    finish();
    keys.forEach((key, i) => best.offer(key, toScore(metric, work.scores[i]!)));
    keys = [];
  };
  for (const [slot, key] of pairs) {
    work.ids[keys.length] = slot;
    keys.push(key);
    if (keys.length === most) flush();
  }
  flush();
}
