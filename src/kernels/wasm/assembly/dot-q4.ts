// Q4_0, four rows interleaved. Per block of 32 columns, 72 bytes: f16[4] row scales, then 64 bytes of nibbles:
// byte 4 * r + i of 16-byte chunk c holds column 4 * c + i of row r in its low nibble and column 16 + 4 * c + i in its high one.
// Products of nibbles (<= 15) and activations (|q| <= 127) are summed in 16 bits: 8 * 2 * 15 * 127 = 30480 fits.
import { fma, loadHalves4 } from './vector-math';

export const Q4_BLOCK_BYTES: usize = 72;

/** Sums of adjacent byte products in 16-bit lanes; `w` must be in 0..127. Both builds give the same integers. */
// @ts-ignore: decorator
@inline
export function pairDot(x: v128, w: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i16x8.relaxed_dot_i8x16_i7x16_s(x, w);
  const even = i16x8.mul(i16x8.shr_s(i16x8.shl(x, 8), 8), v128.and(w, i16x8.splat(0xff)));
  return i16x8.add(even, i16x8.mul(i16x8.shr_s(x, 8), i16x8.shr_u(w, 8)));
}

// @ts-ignore: decorator
@inline
function lowNibbles(v: v128): v128 { return v128.and(v, i8x16.splat(0x0f)); }
// @ts-ignore: decorator
@inline
function highNibbles(v: v128): v128 { return v128.and(i16x8.shr_u(v, 4), i8x16.splat(0x0f)); }

/** One block of nibbles at `w` times 32 i8 activations at `x`: i16x8, row r in lanes 2r and 2r+1. */
// @ts-ignore: decorator
@inline
export function nibbleBlockDot(w: usize, x: usize): v128 {
  const w0 = v128.load(w);
  const w1 = v128.load(w, 16);
  const w2 = v128.load(w, 32);
  const w3 = v128.load(w, 48);
  let a = pairDot(v128.load_splat<u32>(x), lowNibbles(w0));
  let b = pairDot(v128.load_splat<u32>(x, 4), lowNibbles(w1));
  a = i16x8.add(a, pairDot(v128.load_splat<u32>(x, 8), lowNibbles(w2)));
  b = i16x8.add(b, pairDot(v128.load_splat<u32>(x, 12), lowNibbles(w3)));
  a = i16x8.add(a, pairDot(v128.load_splat<u32>(x, 16), highNibbles(w0)));
  b = i16x8.add(b, pairDot(v128.load_splat<u32>(x, 20), highNibbles(w1)));
  a = i16x8.add(a, pairDot(v128.load_splat<u32>(x, 24), highNibbles(w2)));
  b = i16x8.add(b, pairDot(v128.load_splat<u32>(x, 28), highNibbles(w3)));
  return i16x8.add(a, b);
}

// @ts-ignore: decorator
@inline
function addScaled(acc: v128, dot: v128, rowScales: v128, d: v128, correction: v128): v128 {
  const sum = i32x4.sub(i32x4.dot_i16x8_s(dot, i16x8.splat(1)), correction);
  return fma(f32x4.convert_i32x4_s(sum), f32x4.mul(rowScales, d), acc);
}

/** Four rows, one token (activation kind 0, tile 1). */
export function q4Tile1(w: usize, x: usize, numBlocks: i32, out: usize): void {
  let acc = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++) {
    const dot = nibbleBlockDot(w + 8, x);
    acc = addScaled(acc, dot, loadHalves4(w), v128.load_splat<f32>(x, 32), v128.load_splat<f32>(x, 36));
    w += Q4_BLOCK_BYTES;
    x += 40;
  }
  v128.store(out, acc);
}

/** Four groups of four rows, one token: four streams of weights share each broadcast of activations. */
export function q4Tile1Quad(w: usize, stride: usize, x: usize, numBlocks: i32, out: usize): void {
  let acc0 = f32x4.splat(0);
  let acc1 = f32x4.splat(0);
  let acc2 = f32x4.splat(0);
  let acc3 = f32x4.splat(0);
  let v = w + stride;
  let u = v + stride;
  let y = u + stride;
  for (let b = 0; b < numBlocks; b++) {
    let q0 = v128.load(w, 8);
    let q1 = v128.load(v, 8);
    let q2 = v128.load(u, 8);
    let q3 = v128.load(y, 8);
    let s = v128.load_splat<u32>(x);
    let d0 = pairDot(s, lowNibbles(q0));
    let d1 = pairDot(s, lowNibbles(q1));
    let d2 = pairDot(s, lowNibbles(q2));
    let d3 = pairDot(s, lowNibbles(q3));
    s = v128.load_splat<u32>(x, 16);
    d0 = i16x8.add(d0, pairDot(s, highNibbles(q0)));
    d1 = i16x8.add(d1, pairDot(s, highNibbles(q1)));
    d2 = i16x8.add(d2, pairDot(s, highNibbles(q2)));
    d3 = i16x8.add(d3, pairDot(s, highNibbles(q3)));
    q0 = v128.load(w, 24);
    q1 = v128.load(v, 24);
    q2 = v128.load(u, 24);
    q3 = v128.load(y, 24);
    s = v128.load_splat<u32>(x, 4);
    d0 = i16x8.add(d0, pairDot(s, lowNibbles(q0)));
    d1 = i16x8.add(d1, pairDot(s, lowNibbles(q1)));
    d2 = i16x8.add(d2, pairDot(s, lowNibbles(q2)));
    d3 = i16x8.add(d3, pairDot(s, lowNibbles(q3)));
    s = v128.load_splat<u32>(x, 20);
    d0 = i16x8.add(d0, pairDot(s, highNibbles(q0)));
    d1 = i16x8.add(d1, pairDot(s, highNibbles(q1)));
    d2 = i16x8.add(d2, pairDot(s, highNibbles(q2)));
    d3 = i16x8.add(d3, pairDot(s, highNibbles(q3)));
    q0 = v128.load(w, 40);
    q1 = v128.load(v, 40);
    q2 = v128.load(u, 40);
    q3 = v128.load(y, 40);
    s = v128.load_splat<u32>(x, 8);
    d0 = i16x8.add(d0, pairDot(s, lowNibbles(q0)));
    d1 = i16x8.add(d1, pairDot(s, lowNibbles(q1)));
    d2 = i16x8.add(d2, pairDot(s, lowNibbles(q2)));
    d3 = i16x8.add(d3, pairDot(s, lowNibbles(q3)));
    s = v128.load_splat<u32>(x, 24);
    d0 = i16x8.add(d0, pairDot(s, highNibbles(q0)));
    d1 = i16x8.add(d1, pairDot(s, highNibbles(q1)));
    d2 = i16x8.add(d2, pairDot(s, highNibbles(q2)));
    d3 = i16x8.add(d3, pairDot(s, highNibbles(q3)));
    q0 = v128.load(w, 56);
    q1 = v128.load(v, 56);
    q2 = v128.load(u, 56);
    q3 = v128.load(y, 56);
    s = v128.load_splat<u32>(x, 12);
    d0 = i16x8.add(d0, pairDot(s, lowNibbles(q0)));
    d1 = i16x8.add(d1, pairDot(s, lowNibbles(q1)));
    d2 = i16x8.add(d2, pairDot(s, lowNibbles(q2)));
    d3 = i16x8.add(d3, pairDot(s, lowNibbles(q3)));
    s = v128.load_splat<u32>(x, 28);
    d0 = i16x8.add(d0, pairDot(s, highNibbles(q0)));
    d1 = i16x8.add(d1, pairDot(s, highNibbles(q1)));
    d2 = i16x8.add(d2, pairDot(s, highNibbles(q2)));
    d3 = i16x8.add(d3, pairDot(s, highNibbles(q3)));
    const d = v128.load_splat<f32>(x, 32);
    const correction = v128.load_splat<f32>(x, 36);
    acc0 = addScaled(acc0, d0, loadHalves4(w), d, correction);
    acc1 = addScaled(acc1, d1, loadHalves4(v), d, correction);
    acc2 = addScaled(acc2, d2, loadHalves4(u), d, correction);
    acc3 = addScaled(acc3, d3, loadHalves4(y), d, correction);
    w += Q4_BLOCK_BYTES;
    v += Q4_BLOCK_BYTES;
    u += Q4_BLOCK_BYTES;
    y += Q4_BLOCK_BYTES;
    x += 40;
  }
  v128.store(out, acc0);
  v128.store(out, acc1, 16);
  v128.store(out, acc2, 32);
  v128.store(out, acc3, 48);
}

/** Four rows, four tokens (activation kind 0, tile 4): each unpacked chunk of weights serves four tokens. */
export function q4Tile4(w: usize, x: usize, numBlocks: i32, out: usize): void {
  let a0 = f32x4.splat(0);
  let a1 = f32x4.splat(0);
  let a2 = f32x4.splat(0);
  let a3 = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++) {
    let q = v128.load(w, 8);
    let n = lowNibbles(q);
    let d0 = pairDot(v128.load_splat<u32>(x), n);
    let d1 = pairDot(v128.load_splat<u32>(x, 32), n);
    let d2 = pairDot(v128.load_splat<u32>(x, 64), n);
    let d3 = pairDot(v128.load_splat<u32>(x, 96), n);
    n = highNibbles(q);
    d0 = i16x8.add(d0, pairDot(v128.load_splat<u32>(x, 16), n));
    d1 = i16x8.add(d1, pairDot(v128.load_splat<u32>(x, 48), n));
    d2 = i16x8.add(d2, pairDot(v128.load_splat<u32>(x, 80), n));
    d3 = i16x8.add(d3, pairDot(v128.load_splat<u32>(x, 112), n));
    q = v128.load(w, 24);
    n = lowNibbles(q);
    d0 = i16x8.add(d0, pairDot(v128.load_splat<u32>(x, 4), n));
    d1 = i16x8.add(d1, pairDot(v128.load_splat<u32>(x, 36), n));
    d2 = i16x8.add(d2, pairDot(v128.load_splat<u32>(x, 68), n));
    d3 = i16x8.add(d3, pairDot(v128.load_splat<u32>(x, 100), n));
    n = highNibbles(q);
    d0 = i16x8.add(d0, pairDot(v128.load_splat<u32>(x, 20), n));
    d1 = i16x8.add(d1, pairDot(v128.load_splat<u32>(x, 52), n));
    d2 = i16x8.add(d2, pairDot(v128.load_splat<u32>(x, 84), n));
    d3 = i16x8.add(d3, pairDot(v128.load_splat<u32>(x, 116), n));
    q = v128.load(w, 40);
    n = lowNibbles(q);
    d0 = i16x8.add(d0, pairDot(v128.load_splat<u32>(x, 8), n));
    d1 = i16x8.add(d1, pairDot(v128.load_splat<u32>(x, 40), n));
    d2 = i16x8.add(d2, pairDot(v128.load_splat<u32>(x, 72), n));
    d3 = i16x8.add(d3, pairDot(v128.load_splat<u32>(x, 104), n));
    n = highNibbles(q);
    d0 = i16x8.add(d0, pairDot(v128.load_splat<u32>(x, 24), n));
    d1 = i16x8.add(d1, pairDot(v128.load_splat<u32>(x, 56), n));
    d2 = i16x8.add(d2, pairDot(v128.load_splat<u32>(x, 88), n));
    d3 = i16x8.add(d3, pairDot(v128.load_splat<u32>(x, 120), n));
    q = v128.load(w, 56);
    n = lowNibbles(q);
    d0 = i16x8.add(d0, pairDot(v128.load_splat<u32>(x, 12), n));
    d1 = i16x8.add(d1, pairDot(v128.load_splat<u32>(x, 44), n));
    d2 = i16x8.add(d2, pairDot(v128.load_splat<u32>(x, 76), n));
    d3 = i16x8.add(d3, pairDot(v128.load_splat<u32>(x, 108), n));
    n = highNibbles(q);
    d0 = i16x8.add(d0, pairDot(v128.load_splat<u32>(x, 28), n));
    d1 = i16x8.add(d1, pairDot(v128.load_splat<u32>(x, 60), n));
    d2 = i16x8.add(d2, pairDot(v128.load_splat<u32>(x, 92), n));
    d3 = i16x8.add(d3, pairDot(v128.load_splat<u32>(x, 124), n));
    const s = loadHalves4(w);
    a0 = addScaled(a0, d0, s, v128.load_splat<f32>(x, 128), v128.load_splat<f32>(x, 144));
    a1 = addScaled(a1, d1, s, v128.load_splat<f32>(x, 132), v128.load_splat<f32>(x, 148));
    a2 = addScaled(a2, d2, s, v128.load_splat<f32>(x, 136), v128.load_splat<f32>(x, 152));
    a3 = addScaled(a3, d3, s, v128.load_splat<f32>(x, 140), v128.load_splat<f32>(x, 156));
    w += Q4_BLOCK_BYTES;
    x += 160;
  }
  v128.store(out, a0);
  v128.store(out, a1, 16);
  v128.store(out, a2, 32);
  v128.store(out, a3, 48);
}
