// Q6_K for signed dot products: the layout of dot-k, but with scales as i8[16 sub-blocks][4 rows] and the 6 bits in two's
// complement (the file's value minus 32). In the high bits of a byte they are 4 times their signed value; in exchange, d is
// read as a quarter of its value. Activation kind 3.
import { fma } from './vector-math';
import { dot, token0, token1, token2, token3 } from './signed-dot';
import { addSum, highNibbles, lowNibbles, SUMS } from './signed-k';
import { Q6K_BLOCK_BYTES } from './dot-k';

// @ts-ignore: decorator
@inline
function signedScales(at: usize): v128 { return i32x4.extend_low_i16x8_s(i16x8.extend_low_i8x16_s(v128.load_zero<u32>(at))); }

/** Adds a group's block of 256 to its result and clears the sum. */
// @ts-ignore: decorator
@inline
function addQ6K(out: usize, at: usize, w: usize, xd: v128): void {
  const sum = f32x4.convert_i32x4_s(v128.load(out + at, SUMS));
  const quarter = f32x4.mul(v128.load(w), f32x4.splat(0.25));
  v128.store(out + at, fma(sum, f32x4.mul(quarter, xd), v128.load(out + at)));
  v128.store(out + at, i32x4.splat(0), SUMS);
}

/** Chunk 0 to 3 of the low columns of 32, times 4: `highs` has their upper bits, lowest for the first chunk. */
// @ts-ignore: decorator
@inline
function lowSix(q: v128, highs: v128, isOdd: bool): v128 {
  const upper = isOdd ? v128.and(i8x16.shl(highs, 4), i8x16.splat(<i8>0xc0)) : i8x16.shl(highs, 6);
  return v128.or(i8x16.shl(lowNibbles(q), 2), upper);
}
// @ts-ignore: decorator
@inline
function highSix(q: v128, highs: v128, isOdd: bool): v128 {
  const upper = v128.and(isOdd ? highs : i8x16.shl(highs, 2), i8x16.splat(<i8>0xc0));
  return v128.or(i8x16.shl(highNibbles(q), 2), upper);
}

/** Adds a group's block of 32 columns at `q`, with the scales of its two sub-blocks, for one token. */
// @ts-ignore: decorator
@inline
function addSix(out: usize, at: usize, q: usize, scales: usize, low: v128, high: v128): void {
  const h0 = v128.load(q, 64);
  const h1 = v128.load(q, 80);
  const q0 = v128.load(q);
  const q1 = v128.load(q, 16);
  const q2 = v128.load(q, 32);
  const q3 = v128.load(q, 48);
  let d = dot(i32x4.splat(0), token0(low), lowSix(q0, h0, false));
  let e = dot(i32x4.splat(0), token0(high), highSix(q0, h0, false));
  d = dot(d, token1(low), lowSix(q1, h0, true));
  e = dot(e, token1(high), highSix(q1, h0, true));
  d = dot(d, token2(low), lowSix(q2, h1, false));
  e = dot(e, token2(high), highSix(q2, h1, false));
  d = dot(d, token3(low), lowSix(q3, h1, true));
  e = dot(e, token3(high), highSix(q3, h1, true));
  addSum(out, at, d, signedScales(scales));
  addSum(out, at, e, signedScales(scales + 4));
}

/** Sixteen rows, one token. */
export function signedQ6KTile1(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  memory.fill(out, 0, SUMS + 64);
  for (let b = 0; b < numBlocks; b++) {
    for (let j: usize = 0; j < 8; j++) {
      const q: usize = 80 + j * 96;
      const low = v128.load(x + j * 32);
      const high = v128.load(x + j * 32, 16);
      addSix(out, 0, w + q, w + 16 + j * 8, low, high);
      addSix(out, 16, v + q, v + 16 + j * 8, low, high);
      addSix(out, 32, u + q, u + 16 + j * 8, low, high);
      addSix(out, 48, y + q, y + 16 + j * 8, low, high);
    }
    const d = v128.load_splat<f32>(x, 256);
    addQ6K(out, 0, w, d);
    addQ6K(out, 16, v, d);
    addQ6K(out, 32, u, d);
    addQ6K(out, 48, y, d);
    w += Q6K_BLOCK_BYTES;
    v += Q6K_BLOCK_BYTES;
    u += Q6K_BLOCK_BYTES;
    y += Q6K_BLOCK_BYTES;
    x += 308;
  }
}

/** Sixteen rows, four tokens. */
export function signedQ6KTile4(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  memory.fill(out, 0, SUMS + 256);
  for (let b = 0; b < numBlocks; b++) {
    for (let j: usize = 0; j < 8; j++) {
      halfSix(w, v, u, y, x, j, out, false);
      halfSix(w, v, u, y, x, j, out, true);
    }
    for (let token: usize = 0; token < 4; token++) {
      const d = v128.load_splat<f32>(x + token * 4, 1024);
      const at = out + token * 16;
      addQ6K(at, 0, w, d);
      addQ6K(at, 64, v, d);
      addQ6K(at, 128, u, d);
      addQ6K(at, 192, y, d);
    }
    w += Q6K_BLOCK_BYTES;
    v += Q6K_BLOCK_BYTES;
    u += Q6K_BLOCK_BYTES;
    y += Q6K_BLOCK_BYTES;
    x += 1232;
  }
}

/** One sub-block of 16 columns: the low or the high half of the block `j` of 32. */
// @ts-ignore: decorator
@inline
function halfSix(w: usize, v: usize, u: usize, y: usize, x: usize, j: usize, out: usize, isHigh: bool): void {
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
  const xj = x + j * 128 + (isHigh ? 64 : 0);
  for (let c: usize = 0; c < 64; c += 32) {
    const at: usize = 80 + j * 96 + c;
    const upper: usize = 144 + j * 96 + (c >> 1);
    const h0 = v128.load(w + upper);
    const h1 = v128.load(v + upper);
    const h2 = v128.load(u + upper);
    const h3 = v128.load(y + upper);
    let s = v128.load(xj + c);
    let n0 = six(v128.load(w + at), h0, isHigh, false);
    let n1 = six(v128.load(v + at), h1, isHigh, false);
    let n2 = six(v128.load(u + at), h2, isHigh, false);
    let n3 = six(v128.load(y + at), h3, isHigh, false);
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
    s = v128.load(xj + c, 16);
    n0 = six(v128.load(w + at, 16), h0, isHigh, true);
    n1 = six(v128.load(v + at, 16), h1, isHigh, true);
    n2 = six(v128.load(u + at, 16), h2, isHigh, true);
    n3 = six(v128.load(y + at, 16), h3, isHigh, true);
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
  const scalesAt: usize = 16 + j * 8 + (isHigh ? 4 : 0);
  let scales = signedScales(w + scalesAt);
  addSum(out, 0, d00, scales);
  addSum(out, 16, d01, scales);
  addSum(out, 32, d02, scales);
  addSum(out, 48, d03, scales);
  scales = signedScales(v + scalesAt);
  addSum(out, 64, d10, scales);
  addSum(out, 80, d11, scales);
  addSum(out, 96, d12, scales);
  addSum(out, 112, d13, scales);
  scales = signedScales(u + scalesAt);
  addSum(out, 128, d20, scales);
  addSum(out, 144, d21, scales);
  addSum(out, 160, d22, scales);
  addSum(out, 176, d23, scales);
  scales = signedScales(y + scalesAt);
  addSum(out, 192, d30, scales);
  addSum(out, 208, d31, scales);
  addSum(out, 224, d32, scales);
  addSum(out, 240, d33, scales);
}

// @ts-ignore: decorator
@inline
function six(q: v128, highs: v128, isHigh: bool, isOdd: bool): v128 {
  return isHigh ? highSix(q, highs, isOdd) : lowSix(q, highs, isOdd);
}
