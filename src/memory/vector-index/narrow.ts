import { LIVE } from './slot-table.ts';
import type { Metric } from './types.ts';
import type { VectorSpace } from './vector-space.ts';

/** Below this, exact comparison is as fast. */
const MIN_COUNT = 256;
/** Largest share of results: above it most vectors would be compared twice. */
const MAX_SHARE = 1 / 8;
/** For ties rounded differently, and for 127 scales being slightly below the peak. */
const ROUNDING = 1 + 1e-4;
/** Rounding error per term of a sum whose magnitudes add up to at most 1; with spare terms. */
const SUM_ERROR = 2 ** -23;
const MORE_TERMS = 64;

/**
 * Whether bytes can exclude some of `count` vectors from exact comparison: requires bytes beside exact vectors, and unit
 * vectors, because otherwise the error of a rounded score is unbounded.
 */
export function canNarrow({ table, exactTable }: VectorSpace, metric: Metric, count: number, k: number): boolean {
  return metric === 'cosine' && table !== exactTable && count >= MIN_COUNT && k <= count * MAX_SHARE;
}

/**
 * Leaves in `work.ids` the slots that may be among the k nearest, in order; returns their number. For all others, k are certainly
 * nearer: the score by bytes q' · v' has the error (q - q') · v' + q · (v - v'), bounded by the vectors' lengths, and v - v' is at
 * most half a scale per value. With `ids`, candidates are in `work.ids`; otherwise all slots below `count`. `onKept` gets the old
 * and new position of each.
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

  // The k highest lower bounds, without the constant; the least on top.
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

/** Distance of the query from its rounded form. */
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
