import { LIVE } from './slot-table.ts';
import type { Metric } from './types.ts';
import type { VectorSpace } from './vector-space.ts';

/** Below so many, comparing all of them is as fast. */
const MIN_COUNT = 256;
/** Results are at most so small a part of what is compared: else most of it would be compared twice. */
const MAX_SHARE = 1 / 8;
/** A tie may be rounded the other way than ours, and 127 scales may be a little less than the peak. */
const ROUNDING = 1 + 1e-4;
/** Of a sum of floats, for each of its terms, when the sum of their magnitudes is 1 at most; some more for what is left to round. */
const SUM_ERROR = 2 ** -23;
const MORE_TERMS = 64;

/**
 * Whether bytes can say which of `count` vectors need no exact look: there must be bytes beside exact vectors, and vectors of length 1,
 * for else how far a rounded score may be off is not known.
 */
export function canNarrow({ table, exactTable }: VectorSpace, metric: Metric, count: number, k: number): boolean {
  return metric === 'cosine' && table !== exactTable && count >= MIN_COUNT && k <= count * MAX_SHARE;
}

/**
 * Leaves in `work.ids` the slots that may be among the k nearest to the query, in the order they had; how many. Of the others it is
 * certain that k are nearer: a score by bytes q' · v' is off by (q - q') · v' + q · (v - v'), which is at most what the lengths say,
 * and v - v' is half a scale in each value at most. With `ids` they are those in `work.ids`, else all before `count`. `onKept` hears
 * where each was.
 */
export function narrow(
  space: VectorSpace,
  { k, count, ids }: { readonly k: number; readonly count: number; readonly ids: boolean },
  onKept: (from: number, to: number) => void = () => {},
): number {
  const { pack, work, workAt, table, finish, columns } = space;
  pack.distances({
    ...table,
    query: workAt.query,
    ids: ids ? workAt.ids : null,
    numVectors: count,
    out: workAt.scores,
  });
  finish();
  const { scores, ids: slots } = work;
  const { states, scales } = columns;
  const { dim } = table;
  const queryError = roundingError(work.query, dim);
  const perScale = (Math.sqrt(dim) / 2) * ROUNDING * (1 + queryError);
  const constant = queryError + (dim + MORE_TERMS) * SUM_ERROR;

  // The k highest scores that are certain, less the constant; the least of them on top.
  const certain = new Float64Array(k).fill(-Infinity);
  for (let i = 0; i < count; i++) {
    const slot = ids ? slots[i]! : i;
    const low = scores[i]! - perScale * scales[slot]!;
    if (low > certain[0]! && states[slot] === LIVE) replaceLeast(certain, low);
  }
  const floor = certain[0]! - 2 * constant;
  let kept = 0;
  for (let i = 0; i < count; i++) {
    const slot = ids ? slots[i]! : i;
    if (scores[i]! + perScale * scales[slot]! < floor || states[slot] !== LIVE) continue;
    onKept(i, kept);
    slots[kept++] = slot;
  }
  return kept;
}

/** How far the query is from what kernels make of it. */
function roundingError(query: Float32Array, dim: number): number {
  let peak = 0;
  for (let i = 0; i < dim; i++) {
    const value = query[i]!;
    if (value > peak) peak = value;
    else if (-value > peak) peak = -value;
  }
  const scale = Math.fround(peak / 127);
  const perScale = 1 / scale;
  let square = 0;
  for (let i = 0; i < dim; i++) {
    const steps = query[i]! * perScale;
    const off = steps - Math.round(steps);
    square += off * off;
  }
  return Math.sqrt(square) * scale * ROUNDING;
}

/** In a heap with the least on top. */
function replaceLeast(heap: Float64Array, value: number): void {
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1]! < heap[child]!) child++;
    if (heap[child]! >= value) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = value;
}
