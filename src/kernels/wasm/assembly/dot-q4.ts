// Q4_0, four rows interleaved. Per block of 32 columns, 72 bytes: f16[4] row scales, then 64 bytes of nibbles:
// byte 4 * r + i of 16-byte chunk c holds column 4 * c + i of row r in its low nibble and column 16 + 4 * c + i in its high one.
// Products of nibbles (<= 15) and activations (|q| <= 127) are summed in 16 bits: 8 * 2 * 15 * 127 = 30480 fits.
import { token0, token1, token2, token3 } from './signed-dot';
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

/** A block of nibbles in four chunks times 32 i8 activations: i16x8, row r in lanes 2r and 2r+1. */
// @ts-ignore: decorator
@inline
export function nibbleDot(w0: v128, w1: v128, w2: v128, w3: v128, low: v128, high: v128): v128 {
  let a = pairDot(token0(low), lowNibbles(w0));
  let b = pairDot(token1(low), lowNibbles(w1));
  a = i16x8.add(a, pairDot(token2(low), lowNibbles(w2)));
  b = i16x8.add(b, pairDot(token3(low), lowNibbles(w3)));
  a = i16x8.add(a, pairDot(token0(high), highNibbles(w0)));
  b = i16x8.add(b, pairDot(token1(high), highNibbles(w1)));
  a = i16x8.add(a, pairDot(token2(high), highNibbles(w2)));
  b = i16x8.add(b, pairDot(token3(high), highNibbles(w3)));
  return i16x8.add(a, b);
}

/** One block of nibbles at `w` times 32 i8 activations, `low` columns 0 to 15 and `high` the others. */
// @ts-ignore: decorator
@inline
export function nibbleBlockDot(w: usize, low: v128, high: v128): v128 {
  return nibbleDot(v128.load(w), v128.load(w, 16), v128.load(w, 32), v128.load(w, 48), low, high);
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
    const dot = nibbleBlockDot(w + 8, v128.load(x), v128.load(x, 16));
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
    const low = v128.load(x);
    const high = v128.load(x, 16);
    const d = v128.load_splat<f32>(x, 32);
    const correction = v128.load_splat<f32>(x, 36);
    acc0 = addScaled(acc0, nibbleBlockDot(w + 8, low, high), loadHalves4(w), d, correction);
    acc1 = addScaled(acc1, nibbleBlockDot(v + 8, low, high), loadHalves4(v), d, correction);
    acc2 = addScaled(acc2, nibbleBlockDot(u + 8, low, high), loadHalves4(u), d, correction);
    acc3 = addScaled(acc3, nibbleBlockDot(y + 8, low, high), loadHalves4(y), d, correction);
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
    const q0 = v128.load(w, 8);
    const q1 = v128.load(w, 24);
    const q2 = v128.load(w, 40);
    const q3 = v128.load(w, 56);
    const d0 = nibbleDot(q0, q1, q2, q3, v128.load(x), v128.load(x, 16));
    const d1 = nibbleDot(q0, q1, q2, q3, v128.load(x, 32), v128.load(x, 48));
    const d2 = nibbleDot(q0, q1, q2, q3, v128.load(x, 64), v128.load(x, 80));
    const d3 = nibbleDot(q0, q1, q2, q3, v128.load(x, 96), v128.load(x, 112));
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
