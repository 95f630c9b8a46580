/** Numbers looked up by position: logits or sort keys. */
type Keys = Float32Array | Float64Array;

/** Whether position `a` ranks before `b`: the higher key, or the lower position among equals. */
export function ranksBefore(keys: Keys, a: number, b: number): boolean {
  const ka = keys[a] as number;
  const kb = keys[b] as number;
  return ka > kb || (ka === kb && a < b);
}

/**
 * Fills `heap[0..k)` with the positions of the k best of `keys[0..count)`, the worst of them at 0 (a heap with the worst
 * on top: most of a vocabulary fails one comparison). Needs 1 <= k <= count.
 */
export function selectTopK(keys: Keys, count: number, k: number, heap: Int32Array): void {
  const siftDown = (start: number): void => {
    const moving = heap[start] as number;
    let at = start;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= k) break;
      if (child + 1 < k && ranksBefore(keys, heap[child] as number, heap[child + 1] as number)) child++;
      if (!ranksBefore(keys, moving, heap[child] as number)) break;
      heap[at] = heap[child] as number;
      at = child;
    }
    heap[at] = moving;
  };
  for (let i = 0; i < k; i++) heap[i] = i;
  for (let i = (k >> 1) - 1; i >= 0; i--) siftDown(i);
  for (let i = k; i < count; i++) {
    if (!ranksBefore(keys, i, heap[0] as number)) continue;
    heap[0] = i;
    siftDown(0);
  }
}

/** Sorts positions best first. */
export function sortByRank(keys: Keys, positions: Int32Array): Int32Array {
  return positions.sort((a, b) => (keys[b] as number) - (keys[a] as number) || a - b);
}

/**
 * How far below the best key each try reaches. A try costs one pass; nearly always a few hundred tokens hold the mass, and only
 * those are sorted. The last try takes all, so the answer is that of a full sort.
 */
const KEY_GAPS = [2, 3, 4, 5, 6, 7, 8, 10, 12, 16, Infinity];

/**
 * The last position of the shortest ranking, best key first, whose weights add up to `target`; -1 when all are needed.
 * `order` is scratch.
 */
export function findMassCut(
  keys: Keys,
  weights: Float64Array,
  count: number,
  target: number,
  order: Int32Array,
): number {
  let best = -Infinity;
  for (let i = 0; i < count; i++) if ((keys[i] as number) > best) best = keys[i] as number;
  for (const gap of KEY_GAPS) {
    let size = 0;
    let mass = 0;
    for (let i = 0; i < count; i++) {
      if ((keys[i] as number) < best - gap) continue;
      order[size++] = i;
      mass += weights[i] as number;
    }
    // Not worth sorting when they cannot reach the target; sums in another order differ by far less than this slack.
    if (mass < target * 0.999_999 && size < count) continue;
    let sum = 0;
    for (const position of sortByRank(keys, order.subarray(0, size))) {
      sum += weights[position] as number;
      if (sum >= target) return position;
    }
  }
  return -1;
}
