// F32, F16 and BF16 rows stay row-major. Half formats are widened one row group at a time into thread scratch, so that one
// float loop serves all three, and all tokens of the call share the widening.
import { fma, halfToFloat4 } from './vector-math';

export function widenHalf(src: usize, out: usize, count: i32): void {
  let i = 0;
  for (; i + 4 <= count; i += 4) v128.store(out + (<usize>i << 2), halfToFloat4(v128.load_ext<u16>(src + (<usize>i << 1))));
  for (; i < count; i++) store<f32>(out + (<usize>i << 2), f32x4.extract_lane(halfToFloat4(i32x4.splat(load<u16>(src + (<usize>i << 1)))), 0));
}

export function widenBfloat(src: usize, out: usize, count: i32): void {
  for (let i = 0; i < count; i++) store<u32>(out + (<usize>i << 2), <u32>load<u16>(src + (<usize>i << 1)) << 16);
}

/** Dot product of one row and one token; four accumulators, added pairwise, tail last: the order never depends on the batch. */
export function floatDot(w: usize, x: usize, count: i32): f32 {
  let a = f32x4.splat(0);
  let b = f32x4.splat(0);
  let c = f32x4.splat(0);
  let d = f32x4.splat(0);
  let i = 0;
  for (; i + 16 <= count; i += 16, w += 64, x += 64) {
    a = fma(v128.load(w), v128.load(x), a);
    b = fma(v128.load(w, 16), v128.load(x, 16), b);
    c = fma(v128.load(w, 32), v128.load(x, 32), c);
    d = fma(v128.load(w, 48), v128.load(x, 48), d);
  }
  const s = f32x4.add(f32x4.add(a, b), f32x4.add(c, d));
  let sum = f32x4.extract_lane(s, 0) + f32x4.extract_lane(s, 1) + (f32x4.extract_lane(s, 2) + f32x4.extract_lane(s, 3));
  for (; i < count; i++, w += 4, x += 4) sum += load<f32>(w) * load<f32>(x);
  return sum;
}
