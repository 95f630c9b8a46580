// Sums of nibble formats for signed dot products, 32 columns of sixteen rows at a time: Q4_0, codebooks and Q4_K. `format`
// is a constant of each caller, so that inlining removes the branches.
import { fma, loadSixteenths4 } from './vector-math';
import { dot, token0, token1, token2, token3 } from './signed-dot';
import { addSum } from './signed-k';
import { highValues, lowValues } from './dot-codebook';

export const FORMAT_Q4: i32 = 0;
export const FORMAT_CODEBOOK: i32 = 1;
export const FORMAT_Q4K: i32 = 2;

/** Q4_0 nibbles stay in the high half of a byte, 16 times their signed value: one instruction instead of three. */
// @ts-ignore: decorator
@inline
function lowColumns(format: i32, table: v128, q: v128): v128 {
  return format == FORMAT_CODEBOOK ? lowValues(table, q) : format == FORMAT_Q4 ? i8x16.shl(q, 4) : v128.and(q, i8x16.splat(0x0f));
}
// @ts-ignore: decorator
@inline
function highColumns(format: i32, table: v128, q: v128): v128 {
  return format == FORMAT_CODEBOOK ? highValues(table, q) : format == FORMAT_Q4 ? v128.and(q, i8x16.splat(<i8>0xf0)) : i8x16.shr_u(q, 4);
}

/** Scales of a group's rows: integers in Q4_K, a sixteenth of the floats in Q4_0. */
// @ts-ignore: decorator
@inline
function rowScales(format: i32, at: usize): v128 {
  if (format == FORMAT_Q4K) return i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load_zero<u32>(at)));
  return format == FORMAT_CODEBOOK ? v128.load(at) : loadSixteenths4(at);
}

/** Adds to the integer sums of Q4_K, or to the results. */
// @ts-ignore: decorator
@inline
function addScaled(format: i32, out: usize, at: usize, sum: v128, scales: v128, d: v128): void {
  if (format == FORMAT_Q4K) addSum(out, at, sum, scales);
  else v128.store(out + at, fma(f32x4.convert_i32x4_s(sum), f32x4.mul(scales, d), v128.load(out + at)));
}

/** One token: activations at `x`; nibbles at `at` + 8 and scales at `scalesAt` of each block. */
// @ts-ignore: decorator
@inline
export function addNibbles1(format: i32, table: v128, w: usize, v: usize, u: usize, y: usize, at: usize, scalesAt: usize, x: usize, out: usize): void {
  const low = v128.load(x);
  const high = v128.load(x, 16);
  let q0 = v128.load(w + at, 8);
  let q1 = v128.load(v + at, 8);
  let q2 = v128.load(u + at, 8);
  let q3 = v128.load(y + at, 8);
  let t = token0(low);
  let d0 = dot(i32x4.splat(0), t, lowColumns(format, table, q0));
  let d1 = dot(i32x4.splat(0), t, lowColumns(format, table, q1));
  let d2 = dot(i32x4.splat(0), t, lowColumns(format, table, q2));
  let d3 = dot(i32x4.splat(0), t, lowColumns(format, table, q3));
  t = token0(high);
  d0 = dot(d0, t, highColumns(format, table, q0));
  d1 = dot(d1, t, highColumns(format, table, q1));
  d2 = dot(d2, t, highColumns(format, table, q2));
  d3 = dot(d3, t, highColumns(format, table, q3));
  q0 = v128.load(w + at, 24);
  q1 = v128.load(v + at, 24);
  q2 = v128.load(u + at, 24);
  q3 = v128.load(y + at, 24);
  t = token1(low);
  d0 = dot(d0, t, lowColumns(format, table, q0));
  d1 = dot(d1, t, lowColumns(format, table, q1));
  d2 = dot(d2, t, lowColumns(format, table, q2));
  d3 = dot(d3, t, lowColumns(format, table, q3));
  t = token1(high);
  d0 = dot(d0, t, highColumns(format, table, q0));
  d1 = dot(d1, t, highColumns(format, table, q1));
  d2 = dot(d2, t, highColumns(format, table, q2));
  d3 = dot(d3, t, highColumns(format, table, q3));
  q0 = v128.load(w + at, 40);
  q1 = v128.load(v + at, 40);
  q2 = v128.load(u + at, 40);
  q3 = v128.load(y + at, 40);
  t = token2(low);
  d0 = dot(d0, t, lowColumns(format, table, q0));
  d1 = dot(d1, t, lowColumns(format, table, q1));
  d2 = dot(d2, t, lowColumns(format, table, q2));
  d3 = dot(d3, t, lowColumns(format, table, q3));
  t = token2(high);
  d0 = dot(d0, t, highColumns(format, table, q0));
  d1 = dot(d1, t, highColumns(format, table, q1));
  d2 = dot(d2, t, highColumns(format, table, q2));
  d3 = dot(d3, t, highColumns(format, table, q3));
  q0 = v128.load(w + at, 56);
  q1 = v128.load(v + at, 56);
  q2 = v128.load(u + at, 56);
  q3 = v128.load(y + at, 56);
  t = token3(low);
  d0 = dot(d0, t, lowColumns(format, table, q0));
  d1 = dot(d1, t, lowColumns(format, table, q1));
  d2 = dot(d2, t, lowColumns(format, table, q2));
  d3 = dot(d3, t, lowColumns(format, table, q3));
  t = token3(high);
  d0 = dot(d0, t, highColumns(format, table, q0));
  d1 = dot(d1, t, highColumns(format, table, q1));
  d2 = dot(d2, t, highColumns(format, table, q2));
  d3 = dot(d3, t, highColumns(format, table, q3));
  const d = format == FORMAT_Q4K ? i32x4.splat(0) : v128.load_splat<f32>(x, 32);
  addScaled(format, out, 0, d0, rowScales(format, w + scalesAt), d);
  addScaled(format, out, 16, d1, rowScales(format, v + scalesAt), d);
  addScaled(format, out, 32, d2, rowScales(format, u + scalesAt), d);
  addScaled(format, out, 48, d3, rowScales(format, y + scalesAt), d);
}

/** Four tokens. */
// @ts-ignore: decorator
@inline
export function addNibbles4(format: i32, table: v128, w: usize, v: usize, u: usize, y: usize, at: usize, scalesAt: usize, x: usize, out: usize): void {
  let d00 = i32x4.splat(0);
  let d01 = i32x4.splat(0);
  let d02 = i32x4.splat(0);
  let d03 = i32x4.splat(0);
  let d10 = i32x4.splat(0);
  let d11 = i32x4.splat(0);
  let d12 = i32x4.splat(0);
  let d13 = i32x4.splat(0);
  let d20 = i32x4.splat(0);
  let d21 = i32x4.splat(0);
  let d22 = i32x4.splat(0);
  let d23 = i32x4.splat(0);
  let d30 = i32x4.splat(0);
  let d31 = i32x4.splat(0);
  let d32 = i32x4.splat(0);
  let d33 = i32x4.splat(0);
  let t: v128;
  for (let c: usize = 0; c < 64; c += 16) {
    const q = at + c;
    const q0 = v128.load(w + q, 8);
    const q1 = v128.load(v + q, 8);
    const q2 = v128.load(u + q, 8);
    const q3 = v128.load(y + q, 8);
    let s = v128.load(x + c);
    let n0 = lowColumns(format, table, q0);
    let n1 = lowColumns(format, table, q1);
    let n2 = lowColumns(format, table, q2);
    let n3 = lowColumns(format, table, q3);
    t = token0(s);
    d00 = dot(d00, t, n0);
    d10 = dot(d10, t, n1);
    d20 = dot(d20, t, n2);
    d30 = dot(d30, t, n3);
    t = token1(s);
    d01 = dot(d01, t, n0);
    d11 = dot(d11, t, n1);
    d21 = dot(d21, t, n2);
    d31 = dot(d31, t, n3);
    t = token2(s);
    d02 = dot(d02, t, n0);
    d12 = dot(d12, t, n1);
    d22 = dot(d22, t, n2);
    d32 = dot(d32, t, n3);
    t = token3(s);
    d03 = dot(d03, t, n0);
    d13 = dot(d13, t, n1);
    d23 = dot(d23, t, n2);
    d33 = dot(d33, t, n3);
    s = v128.load(x + c, 64);
    n0 = highColumns(format, table, q0);
    n1 = highColumns(format, table, q1);
    n2 = highColumns(format, table, q2);
    n3 = highColumns(format, table, q3);
    t = token0(s);
    d00 = dot(d00, t, n0);
    d10 = dot(d10, t, n1);
    d20 = dot(d20, t, n2);
    d30 = dot(d30, t, n3);
    t = token1(s);
    d01 = dot(d01, t, n0);
    d11 = dot(d11, t, n1);
    d21 = dot(d21, t, n2);
    d31 = dot(d31, t, n3);
    t = token2(s);
    d02 = dot(d02, t, n0);
    d12 = dot(d12, t, n1);
    d22 = dot(d22, t, n2);
    d32 = dot(d32, t, n3);
    t = token3(s);
    d03 = dot(d03, t, n0);
    d13 = dot(d13, t, n1);
    d23 = dot(d23, t, n2);
    d33 = dot(d33, t, n3);
  }
  const d = format == FORMAT_Q4K ? i32x4.splat(0) : v128.load(x, 128);
  const s0 = rowScales(format, w + scalesAt);
  const s1 = rowScales(format, v + scalesAt);
  const s2 = rowScales(format, u + scalesAt);
  const s3 = rowScales(format, y + scalesAt);
  t = token0(d);
  addScaled(format, out, 0, d00, s0, t);
  addScaled(format, out, 64, d10, s1, t);
  addScaled(format, out, 128, d20, s2, t);
  addScaled(format, out, 192, d30, s3, t);
  t = token1(d);
  addScaled(format, out, 16, d01, s0, t);
  addScaled(format, out, 80, d11, s1, t);
  addScaled(format, out, 144, d21, s2, t);
  addScaled(format, out, 208, d31, s3, t);
  t = token2(d);
  addScaled(format, out, 32, d02, s0, t);
  addScaled(format, out, 96, d12, s1, t);
  addScaled(format, out, 160, d22, s2, t);
  addScaled(format, out, 224, d32, s3, t);
  t = token3(d);
  addScaled(format, out, 48, d03, s0, t);
  addScaled(format, out, 112, d13, s1, t);
  addScaled(format, out, 176, d23, s2, t);
  addScaled(format, out, 240, d33, s3, t);
}
