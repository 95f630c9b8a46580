// Q4_0 for signed dot products: the layout of dot-q4, with nibbles in two's complement (the file's value minus 8).
// Shifted or masked into the high half of a byte, a nibble is 16 times its signed value: one instruction instead of three.
// In exchange, row scales are read as a sixteenth of their value.
import { fma, loadSixteenths4 } from './vector-math';
import { dot, token0, token1, token2, token3 } from './signed-dot';
import { Q4_BLOCK_BYTES } from './dot-q4';

// @ts-ignore: decorator
@inline
function lowNibbles(v: v128): v128 { return i8x16.shl(v, 4); }
// @ts-ignore: decorator
@inline
function highNibbles(v: v128): v128 { return v128.and(v, i8x16.splat(<i8>0xf0)); }

// @ts-ignore: decorator
@inline
function addScaled(out: usize, at: usize, sum: v128, rowScales: v128, d: v128): void {
  v128.store(out + at, fma(f32x4.convert_i32x4_s(sum), f32x4.mul(rowScales, d), v128.load(out + at)));
}

/** Sixteen rows, one token. */
export function signedQ4Tile1(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  memory.fill(out, 0, 64);
  for (let b = 0; b < numBlocks; b++) {
    const low = v128.load(x);
    const high = v128.load(x, 16);
    const d = v128.load_splat<f32>(x, 32);
    let q0 = v128.load(w, 8);
    let q1 = v128.load(v, 8);
    let q2 = v128.load(u, 8);
    let q3 = v128.load(y, 8);
    let t = token0(low);
    let d0 = dot(i32x4.splat(0), t, lowNibbles(q0));
    let d1 = dot(i32x4.splat(0), t, lowNibbles(q1));
    let d2 = dot(i32x4.splat(0), t, lowNibbles(q2));
    let d3 = dot(i32x4.splat(0), t, lowNibbles(q3));
    t = token0(high);
    d0 = dot(d0, t, highNibbles(q0));
    d1 = dot(d1, t, highNibbles(q1));
    d2 = dot(d2, t, highNibbles(q2));
    d3 = dot(d3, t, highNibbles(q3));
    q0 = v128.load(w, 24);
    q1 = v128.load(v, 24);
    q2 = v128.load(u, 24);
    q3 = v128.load(y, 24);
    t = token1(low);
    d0 = dot(d0, t, lowNibbles(q0));
    d1 = dot(d1, t, lowNibbles(q1));
    d2 = dot(d2, t, lowNibbles(q2));
    d3 = dot(d3, t, lowNibbles(q3));
    t = token1(high);
    d0 = dot(d0, t, highNibbles(q0));
    d1 = dot(d1, t, highNibbles(q1));
    d2 = dot(d2, t, highNibbles(q2));
    d3 = dot(d3, t, highNibbles(q3));
    q0 = v128.load(w, 40);
    q1 = v128.load(v, 40);
    q2 = v128.load(u, 40);
    q3 = v128.load(y, 40);
    t = token2(low);
    d0 = dot(d0, t, lowNibbles(q0));
    d1 = dot(d1, t, lowNibbles(q1));
    d2 = dot(d2, t, lowNibbles(q2));
    d3 = dot(d3, t, lowNibbles(q3));
    t = token2(high);
    d0 = dot(d0, t, highNibbles(q0));
    d1 = dot(d1, t, highNibbles(q1));
    d2 = dot(d2, t, highNibbles(q2));
    d3 = dot(d3, t, highNibbles(q3));
    q0 = v128.load(w, 56);
    q1 = v128.load(v, 56);
    q2 = v128.load(u, 56);
    q3 = v128.load(y, 56);
    t = token3(low);
    d0 = dot(d0, t, lowNibbles(q0));
    d1 = dot(d1, t, lowNibbles(q1));
    d2 = dot(d2, t, lowNibbles(q2));
    d3 = dot(d3, t, lowNibbles(q3));
    t = token3(high);
    d0 = dot(d0, t, highNibbles(q0));
    d1 = dot(d1, t, highNibbles(q1));
    d2 = dot(d2, t, highNibbles(q2));
    d3 = dot(d3, t, highNibbles(q3));
    addScaled(out, 0, d0, loadSixteenths4(w), d);
    addScaled(out, 16, d1, loadSixteenths4(v), d);
    addScaled(out, 32, d2, loadSixteenths4(u), d);
    addScaled(out, 48, d3, loadSixteenths4(y), d);
    w += Q4_BLOCK_BYTES;
    v += Q4_BLOCK_BYTES;
    u += Q4_BLOCK_BYTES;
    y += Q4_BLOCK_BYTES;
    x += 36;
  }
}

/** Sixteen rows, four tokens. */
export function signedQ4Tile4(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  memory.fill(out, 0, 256);
  for (let b = 0; b < numBlocks; b++) {
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
      const q0 = v128.load(w + c, 8);
      const q1 = v128.load(v + c, 8);
      const q2 = v128.load(u + c, 8);
      const q3 = v128.load(y + c, 8);
      let s = v128.load(x + c);
      let n0 = lowNibbles(q0);
      let n1 = lowNibbles(q1);
      let n2 = lowNibbles(q2);
      let n3 = lowNibbles(q3);
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
      n0 = highNibbles(q0);
      n1 = highNibbles(q1);
      n2 = highNibbles(q2);
      n3 = highNibbles(q3);
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
    const d = v128.load(x, 128);
    const s0 = loadSixteenths4(w);
    const s1 = loadSixteenths4(v);
    const s2 = loadSixteenths4(u);
    const s3 = loadSixteenths4(y);
    t = token0(d);
    addScaled(out, 0, d00, s0, t);
    addScaled(out, 64, d10, s1, t);
    addScaled(out, 128, d20, s2, t);
    addScaled(out, 192, d30, s3, t);
    t = token1(d);
    addScaled(out, 16, d01, s0, t);
    addScaled(out, 80, d11, s1, t);
    addScaled(out, 144, d21, s2, t);
    addScaled(out, 208, d31, s3, t);
    t = token2(d);
    addScaled(out, 32, d02, s0, t);
    addScaled(out, 96, d12, s1, t);
    addScaled(out, 160, d22, s2, t);
    addScaled(out, 224, d32, s3, t);
    t = token3(d);
    addScaled(out, 48, d03, s0, t);
    addScaled(out, 112, d13, s1, t);
    addScaled(out, 176, d23, s2, t);
    addScaled(out, 240, d33, s3, t);
    w += Q4_BLOCK_BYTES;
    v += Q4_BLOCK_BYTES;
    u += Q4_BLOCK_BYTES;
    y += Q4_BLOCK_BYTES;
    x += 144;
  }
}
