// Distances between one vector and many, for nearest-neighbour search. A vector's arithmetic never depends on the others.
import { address, takeChunk } from './control';
import { floatDot } from './dot-float';
import { fma, horizontalSum } from './vector-math';

const CHUNK: i32 = 32;

export function squareDistance(x: usize, y: usize, count: i32): f32 {
  let a = f32x4.splat(0);
  let b = f32x4.splat(0);
  let i = 0;
  for (; i + 8 <= count; i += 8, x += 32, y += 32) {
    const low = f32x4.sub(v128.load(x), v128.load(y));
    const high = f32x4.sub(v128.load(x, 16), v128.load(y, 16));
    a = fma(low, low, a);
    b = fma(high, high, b);
  }
  let sum = horizontalSum(f32x4.add(a, b));
  for (; i < count; i++, x += 4, y += 4) {
    const difference = load<f32>(x) - load<f32>(y);
    sum += difference * difference;
  }
  return sum;
}

/** Dot product of bytes, summed exactly. */
export function byteDot(x: usize, y: usize, count: i32): i32 {
  let a = i32x4.splat(0);
  let b = i32x4.splat(0);
  let i = 0;
  for (; i + 16 <= count; i += 16, x += 16, y += 16) {
    a = i32x4.add(a, i32x4.dot_i16x8_s(v128.load_ext<i8>(x), v128.load_ext<i8>(y)));
    b = i32x4.add(b, i32x4.dot_i16x8_s(v128.load_ext<i8>(x, 8), v128.load_ext<i8>(y, 8)));
  }
  a = i32x4.add(a, b);
  let sum = i32x4.extract_lane(a, 0) + i32x4.extract_lane(a, 1) + i32x4.extract_lane(a, 2) + i32x4.extract_lane(a, 3);
  for (; i < count; i++, x++, y++) sum += <i32>load<i8>(x) * <i32>load<i8>(y);
  return sum;
}

/** Rounds to bytes at `q`; returns the scale, NaN if the query is not finite. */
export function roundQuery(x: usize, count: i32, q: usize): f32 {
  let peak: f32 = 0;
  for (let i = 0; i < count; i++) peak = max(peak, abs(load<f32>(x + (<usize>i << 2))));
  const scale: f32 = peak < Infinity ? peak / 127 : NaN;
  for (let i = 0; i < count; i++, q++) {
    // Exceeds 127 when the scale is nearly zero.
    const value: f32 = scale > 0 ? nearest(load<f32>(x + (<usize>i << 2)) / scale) : 0;
    store<i8>(q, <i8>min<f32>(max<f32>(value, -127), 127));
  }
  return scale;
}

/** args: 2 query, 3 vectors, 4 number of vectors, 5 dim, 6 bytes, 7 scales, 8 ids or 0, 9 l2, 10 out. */
export function distancesOp(op: usize, scratch: usize): void {
  const query = address(op, 8);
  const vectors = address(op, 12);
  const count = load<i32>(op, 16);
  const dim = load<i32>(op, 20);
  const isBytes = load<i32>(op, 24) != 0;
  const scales = address(op, 28);
  const ids = address(op, 32);
  const isL2 = load<i32>(op, 36) != 0;
  const out = address(op, 40);
  const queryScale: f32 = isBytes ? roundQuery(query, dim, scratch) : 0;
  const querySquare = isBytes ? <f64>queryScale * <f64>queryScale * <f64>byteDot(scratch, scratch, dim) : 0;
  for (let first = takeChunk(op) * CHUNK; first < count; first = takeChunk(op) * CHUNK) {
    for (let i = first; i < min(first + CHUNK, count); i++) {
      const id = ids ? <usize>load<i32>(ids + (<usize>i << 2)) : <usize>i;
      const target = out + (<usize>i << 2);
      if (!isBytes) {
        const vector = vectors + id * <usize>dim * 4;
        store<f32>(target, isL2 ? squareDistance(query, vector, dim) : floatDot(query, vector, dim));
        continue;
      }
      const vector = vectors + id * <usize>dim;
      const scale = load<f32>(scales + (id << 2));
      const dot = byteDot(vector, scratch, dim);
      if (isL2) {
        const product = <f64>byteDot(vector, vector, dim) * <f64>scale - 2.0 * <f64>dot * <f64>queryScale;
        store<f32>(target, <f32>(querySquare + product * <f64>scale));
      } else store<f32>(target, <f32>dot * (queryScale * scale));
    }
  }
}
