// The k largest logits of each row and the row's sum of exponentials, in two operations: all threads compute maxima of blocks
// and sums of chunks, then one thread per row searches only blocks whose maximum can be among the best.
import { address, takeChunk } from './control';
import { expVector, horizontalMax } from './vector-math';

const BLOCK: i32 = 64; // must match ../../top-logits-op.ts, which sizes the scratch
const CHUNK: i32 = 4096;

/** Writes the maxima of the chunk's blocks to `maxima`; its maximum, sum of powers and number of bad values to `part`. */
function scanChunk(x: usize, count: i32, maxima: usize, part: usize): void {
  let most: f32 = -Infinity;
  let numBad = 0;
  for (let first = 0; first < count; first += BLOCK) {
    const end = min(first + BLOCK, count);
    let max4 = f32x4.splat(-Infinity);
    let bad4 = i32x4.splat(0);
    let i = first;
    for (; i + 4 <= end; i += 4) {
      const v = v128.load(x + (<usize>i << 2));
      max4 = f32x4.pmax(max4, v); // ignores NaN in v
      bad4 = i32x4.add(bad4, v128.not(f32x4.lt(v, f32x4.splat(Infinity))));
    }
    let max = horizontalMax(max4);
    numBad -= i32x4.extract_lane(bad4, 0) + i32x4.extract_lane(bad4, 1) + i32x4.extract_lane(bad4, 2) + i32x4.extract_lane(bad4, 3);
    for (; i < end; i++) {
      const value = load<f32>(x + (<usize>i << 2));
      if (value > max) max = value;
      if (!(value < Infinity)) numBad++;
    }
    store<f32>(maxima + (<usize>(first / BLOCK) << 2), max);
    if (max > most) most = max;
  }
  let sum: f64 = 0;
  if (most > -Infinity) {
    let low = f64x2.splat(0);
    let high = f64x2.splat(0);
    const shift = f32x4.splat(most);
    let i = 0;
    for (; i + 4 <= count; i += 4) {
      const powers = expVector(f32x4.sub(v128.load(x + (<usize>i << 2)), shift));
      low = f64x2.add(low, f64x2.promote_low_f32x4(powers));
      high = f64x2.add(high, f64x2.promote_low_f32x4(v128.shuffle<i32>(powers, powers, 2, 3, 2, 3)));
    }
    low = f64x2.add(low, high);
    sum = f64x2.extract_lane(low, 0) + f64x2.extract_lane(low, 1);
    for (; i < count; i++) {
      const power = expVector(f32x4.splat(load<f32>(x + (<usize>i << 2)) - most));
      sum += <f64>f32x4.extract_lane(power, 0);
    }
  }
  store<f32>(part, most);
  store<f32>(part, <f32>sum, 4);
  store<f32>(part, <f32>numBad, 8);
}

// A heap with the worst on top, in the memory of the results: most values fail one comparison.
// @ts-ignore: decorator
@inline
function valueAt(values: usize, i: i32): f32 { return load<f32>(values + (<usize>i << 2)); }
// @ts-ignore: decorator
@inline
function idAt(ids: usize, i: i32): i32 { return load<i32>(ids + (<usize>i << 2)); }
// @ts-ignore: decorator
@inline
function ranksBefore(a: f32, idA: i32, b: f32, idB: i32): boolean { return a > b || (a == b && idA < idB); }
// @ts-ignore: decorator
@inline
function put(values: usize, ids: usize, at: i32, value: f32, id: i32): void {
  store<f32>(values + (<usize>at << 2), value);
  store<i32>(ids + (<usize>at << 2), id);
}

function siftDown(values: usize, ids: usize, count: i32, value: f32, id: i32): void {
  let at = 0;
  while (true) {
    let child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && ranksBefore(valueAt(values, child), idAt(ids, child), valueAt(values, child + 1), idAt(ids, child + 1))) child++;
    if (!ranksBefore(value, id, valueAt(values, child), idAt(ids, child))) break;
    put(values, ids, at, valueAt(values, child), idAt(ids, child));
    at = child;
  }
  put(values, ids, at, value, id);
}

/** Ids are in ascending order: of equal values, earlier ones stay. Returns the new count. */
function offer(values: usize, ids: usize, count: i32, k: i32, value: f32, id: i32): i32 {
  if (count == k) {
    if (value > load<f32>(values)) siftDown(values, ids, k, value, id);
    return k;
  }
  let at = count;
  while (at > 0) {
    const parent = (at - 1) / 2;
    if (!ranksBefore(valueAt(values, parent), idAt(ids, parent), value, id)) break;
    put(values, ids, at, valueAt(values, parent), idAt(ids, parent));
    at = parent;
  }
  put(values, ids, at, value, id);
  return count + 1;
}

function findBest(x: usize, vocab: i32, maxima: usize, k: i32, values: usize, ids: usize): void {
  const blocks = (vocab + BLOCK - 1) / BLOCK;
  let least: f32 = -Infinity;
  let count = 0;
  if (blocks > k) { // k blocks have values of at least the kth largest maximum
    for (let b = 0; b < blocks; b++) count = offer(values, ids, count, k, valueAt(maxima, b), b);
    least = load<f32>(values);
    count = 0;
  }
  for (let b = 0; b < blocks; b++) {
    if (valueAt(maxima, b) < least) continue;
    const end = min((b + 1) * BLOCK, vocab);
    for (let i = b * BLOCK; i < end; i++) {
      const value = valueAt(x, i);
      if (value >= least) count = offer(values, ids, count, k, value, i);
    }
  }
  for (let i = count; i < k; i++) put(values, ids, i, NaN, 0); // only if there are NaN
  for (let end = count - 1; end > 0; end--) {
    const value = valueAt(values, end);
    const id = idAt(ids, end);
    put(values, ids, end, load<f32>(values), load<i32>(ids));
    siftDown(values, ids, end, value, id);
  }
}

/** args: 2 logits, 3 number of rows, 4 vocabulary, 5 k, 6 values, 7 ids, 8 stats, 9 scratch, 10 whether the parts are ready. */
export function topLogitsOp(op: usize): void {
  const logits = address(op, 8);
  const rows = load<i32>(op, 12);
  const vocab = load<i32>(op, 16);
  const k = load<i32>(op, 20);
  const scratch = address(op, 36);
  const blocks = (vocab + BLOCK - 1) / BLOCK;
  const chunks = (vocab + CHUNK - 1) / CHUNK;
  const scratchBytes = <usize>(blocks + 3 * chunks) << 2;
  if (!load<i32>(op, 40)) {
    for (let i = takeChunk(op); i < rows * chunks; i = takeChunk(op)) {
      const first = (i % chunks) * CHUNK;
      const maxima = scratch + <usize>(i / chunks) * scratchBytes;
      const x = logits + (<usize>(i / chunks) * <usize>vocab + <usize>first << 2);
      const part = maxima + (<usize>(blocks + 3 * (i % chunks)) << 2);
      scanChunk(x, min(CHUNK, vocab - first), maxima + (<usize>(first / BLOCK) << 2), part);
    }
    return;
  }
  for (let row = takeChunk(op); row < rows; row = takeChunk(op)) {
    const maxima = scratch + <usize>row * scratchBytes;
    const values = address(op, 24) + (<usize>(row * k) << 2);
    const ids = address(op, 28) + (<usize>(row * k) << 2);
    const stats = address(op, 32) + <usize>row * 12;
    findBest(logits + (<usize>row * <usize>vocab << 2), vocab, maxima, k, values, ids);
    const most = load<f32>(values);
    let sum: f64 = 0;
    let numBad: f32 = 0;
    for (let i = 0; i < chunks; i++) {
      const part = maxima + (<usize>(blocks + 3 * i) << 2);
      const max = load<f32>(part);
      numBad += load<f32>(part, 8);
      if (max > -Infinity) sum += <f64>load<f32>(part, 4) * Math.exp(<f64>max - <f64>most);
    }
    store<f32>(stats, most);
    store<f32>(stats, <f32>sum, 4);
    store<f32>(stats, numBad, 8);
  }
}
