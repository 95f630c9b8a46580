/** Numbers by position: logits or sort keys. */
type Keys = Float32Array | Float64Array;

/** Whether position `a` ranks before `b`: the higher key, or the lower position among equals. */
export function ranksBefore(keys: Keys, a: number, b: number): boolean {
  const ka = keys[a] as number;
  const kb = keys[b] as number;
  return ka > kb || (ka === kb && a < b);
}

/**
 * Fills `heap[0..k)` with the positions of the k best of `keys[0..count)`, the worst at 0, because most of a vocabulary
 * fails one comparison with it. Requires 1 <= k <= count.
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

/** Width of the key bins below the best key; the last bin takes all others. Fine enough that few share a bin. */
const NUM_BINS = 2048;
const BINS_PER_UNIT = 128;
const binMass = new Float64Array(NUM_BINS);

const binOf = (distance: number): number => Math.min(NUM_BINS - 1, Math.floor(distance * BINS_PER_UNIT));

/**
 * The last position of the shortest ranking, best key first, whose weights sum to `target`; -1 if all are needed. `order` is scratch.
 * One pass sums the weights by key bins; only the bin in which the sum passes the target is sorted, so a flat distribution over a
 * large vocabulary costs hardly more than a peaked one.
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
  binMass.fill(0);
  for (let i = 0; i < count; i++) binMass[binOf(best - (keys[i] as number))]! += weights[i] as number;
  let before = 0;
  let bin = 0;
  while (bin < NUM_BINS - 1 && before + (binMass[bin] as number) < target) before += binMass[bin++] as number;
  // Another summing order differs in the last bits: if this bin falls short, the next one has the answer.
  for (; bin < NUM_BINS; bin++) {
    let size = 0;
    for (let i = 0; i < count; i++) if (binOf(best - (keys[i] as number)) === bin) order[size++] = i;
    for (const position of sortByRank(keys, order.subarray(0, size))) {
      before += weights[position] as number;
      if (before >= target) return position;
    }
  }
  return -1;
}
