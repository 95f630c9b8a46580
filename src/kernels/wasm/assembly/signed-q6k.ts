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

/** Sixteen rows, one token. */
export function signedQ6KTile1(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  memory.fill(out, 0, SUMS + 64);
  for (let b = 0; b < numBlocks; b++) {
    for (let j: usize = 0; j < 8; j++) {
      const q: usize = 80 + j * 96;
      const low = v128.load(x + j * 32);
      const high = v128.load(x + j * 32, 16);
      let d0 = i32x4.splat(0);
      let d1 = i32x4.splat(0);
      let d2 = i32x4.splat(0);
      let d3 = i32x4.splat(0);
      let e0 = i32x4.splat(0);
      let e1 = i32x4.splat(0);
      let e2 = i32x4.splat(0);
      let e3 = i32x4.splat(0);
      let h0 = v128.load(w + q, 64);
      let h1 = v128.load(v + q, 64);
      let h2 = v128.load(u + q, 64);
      let h3 = v128.load(y + q, 64);
      let q0 = v128.load(w + q);
      let q1 = v128.load(v + q);
      let q2 = v128.load(u + q);
      let q3 = v128.load(y + q);
      let t = token0(low);
      d0 = dot(d0, t, lowSix(q0, h0, false));
      d1 = dot(d1, t, lowSix(q1, h1, false));
      d2 = dot(d2, t, lowSix(q2, h2, false));
      d3 = dot(d3, t, lowSix(q3, h3, false));
      t = token0(high);
      e0 = dot(e0, t, highSix(q0, h0, false));
      e1 = dot(e1, t, highSix(q1, h1, false));
      e2 = dot(e2, t, highSix(q2, h2, false));
      e3 = dot(e3, t, highSix(q3, h3, false));
      q0 = v128.load(w + q, 16);
      q1 = v128.load(v + q, 16);
      q2 = v128.load(u + q, 16);
      q3 = v128.load(y + q, 16);
      t = token1(low);
      d0 = dot(d0, t, lowSix(q0, h0, true));
      d1 = dot(d1, t, lowSix(q1, h1, true));
      d2 = dot(d2, t, lowSix(q2, h2, true));
      d3 = dot(d3, t, lowSix(q3, h3, true));
      t = token1(high);
      e0 = dot(e0, t, highSix(q0, h0, true));
      e1 = dot(e1, t, highSix(q1, h1, true));
      e2 = dot(e2, t, highSix(q2, h2, true));
      e3 = dot(e3, t, highSix(q3, h3, true));
      h0 = v128.load(w + q, 80);
      h1 = v128.load(v + q, 80);
      h2 = v128.load(u + q, 80);
      h3 = v128.load(y + q, 80);
      q0 = v128.load(w + q, 32);
      q1 = v128.load(v + q, 32);
      q2 = v128.load(u + q, 32);
      q3 = v128.load(y + q, 32);
      t = token2(low);
      d0 = dot(d0, t, lowSix(q0, h0, false));
      d1 = dot(d1, t, lowSix(q1, h1, false));
      d2 = dot(d2, t, lowSix(q2, h2, false));
      d3 = dot(d3, t, lowSix(q3, h3, false));
      t = token2(high);
      e0 = dot(e0, t, highSix(q0, h0, false));
      e1 = dot(e1, t, highSix(q1, h1, false));
      e2 = dot(e2, t, highSix(q2, h2, false));
      e3 = dot(e3, t, highSix(q3, h3, false));
      q0 = v128.load(w + q, 48);
      q1 = v128.load(v + q, 48);
      q2 = v128.load(u + q, 48);
      q3 = v128.load(y + q, 48);
      t = token3(low);
      d0 = dot(d0, t, lowSix(q0, h0, true));
      d1 = dot(d1, t, lowSix(q1, h1, true));
      d2 = dot(d2, t, lowSix(q2, h2, true));
      d3 = dot(d3, t, lowSix(q3, h3, true));
      t = token3(high);
      e0 = dot(e0, t, highSix(q0, h0, true));
      e1 = dot(e1, t, highSix(q1, h1, true));
      e2 = dot(e2, t, highSix(q2, h2, true));
      e3 = dot(e3, t, highSix(q3, h3, true));
      addSum(out, 0, d0, signedScales(w + 16 + j * 8));
      addSum(out, 0, e0, signedScales(w + 20 + j * 8));
      addSum(out, 16, d1, signedScales(v + 16 + j * 8));
      addSum(out, 16, e1, signedScales(v + 20 + j * 8));
      addSum(out, 32, d2, signedScales(u + 16 + j * 8));
      addSum(out, 32, e2, signedScales(u + 20 + j * 8));
      addSum(out, 48, d3, signedScales(y + 16 + j * 8));
      addSum(out, 48, e3, signedScales(y + 20 + j * 8));
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
