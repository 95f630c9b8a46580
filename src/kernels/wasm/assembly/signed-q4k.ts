// Q4_K for signed dot products: the layout of dot-k, but with scales as u8[8 sub-blocks][4 rows]. Activation kind 3.
import { fma } from './vector-math';
import { dot, token0, token1, token2, token3 } from './signed-dot';
import { addSum, highNibbles, lowNibbles, SUMS } from './signed-k';
import { Q4K_BLOCK_BYTES } from './dot-k';

// @ts-ignore: decorator
@inline
function unsignedScales(at: usize): v128 { return i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load_zero<u32>(at))); }
/** The mins of a block of 256 times the sums of its activations. */
// @ts-ignore: decorator
@inline
function minDot(mins: usize, sums: usize): v128 {
  let total = i32x4.dot_i16x8_s(v128.load_ext<u8>(mins), v128.load_splat<u32>(sums));
  for (let p: usize = 1; p < 4; p++) {
    total = i32x4.add(total, i32x4.dot_i16x8_s(v128.load_ext<u8>(mins + p * 8), v128.load_splat<u32>(sums + p * 4)));
  }
  return total;
}

/** Adds a group's block of 256 to its result and clears the sum. */
// @ts-ignore: decorator
@inline
function addQ4K(out: usize, at: usize, w: usize, sums: usize, xd: v128): void {
  const sum = f32x4.convert_i32x4_s(v128.load(out + at, SUMS));
  const withSum = fma(sum, f32x4.mul(v128.load(w), xd), v128.load(out + at));
  const minSum = f32x4.convert_i32x4_s(minDot(w + 64, sums));
  v128.store(out + at, fma(minSum, f32x4.neg(f32x4.mul(v128.load(w, 16), xd)), withSum));
  v128.store(out + at, i32x4.splat(0), SUMS);
}

/** Sixteen rows, one token. */
export function signedQ4KTile1(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  memory.fill(out, 0, SUMS + 64);
  for (let b = 0; b < numBlocks; b++) {
    for (let j: usize = 0; j < 8; j++) {
      const q: usize = 96 + j * 64;
      const low = v128.load(x + j * 32);
      const high = v128.load(x + j * 32, 16);
      let q0 = v128.load(w + q);
      let q1 = v128.load(v + q);
      let q2 = v128.load(u + q);
      let q3 = v128.load(y + q);
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
      q0 = v128.load(w + q, 16);
      q1 = v128.load(v + q, 16);
      q2 = v128.load(u + q, 16);
      q3 = v128.load(y + q, 16);
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
      q0 = v128.load(w + q, 32);
      q1 = v128.load(v + q, 32);
      q2 = v128.load(u + q, 32);
      q3 = v128.load(y + q, 32);
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
      q0 = v128.load(w + q, 48);
      q1 = v128.load(v + q, 48);
      q2 = v128.load(u + q, 48);
      q3 = v128.load(y + q, 48);
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
      addSum(out, 0, d0, unsignedScales(w + 32 + j * 4));
      addSum(out, 16, d1, unsignedScales(v + 32 + j * 4));
      addSum(out, 32, d2, unsignedScales(u + 32 + j * 4));
      addSum(out, 48, d3, unsignedScales(y + 32 + j * 4));
    }
    const d = v128.load_splat<f32>(x, 256);
    addQ4K(out, 0, w, x + 292, d);
    addQ4K(out, 16, v, x + 292, d);
    addQ4K(out, 32, u, x + 292, d);
    addQ4K(out, 48, y, x + 292, d);
    w += Q4K_BLOCK_BYTES;
    v += Q4K_BLOCK_BYTES;
    u += Q4K_BLOCK_BYTES;
    y += Q4K_BLOCK_BYTES;
    x += 308;
  }
}

/** Sixteen rows, four tokens. */
export function signedQ4KTile4(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  memory.fill(out, 0, SUMS + 256);
  for (let b = 0; b < numBlocks; b++) {
    for (let j: usize = 0; j < 8; j++) {
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
      const xj = x + j * 128;
      for (let c: usize = 0; c < 64; c += 16) {
        const at: usize = 96 + j * 64 + c;
        const q0 = v128.load(w + at);
        const q1 = v128.load(v + at);
        const q2 = v128.load(u + at);
        const q3 = v128.load(y + at);
        let s = v128.load(xj + c);
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
        s = v128.load(xj + c, 64);
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
      let scales = unsignedScales(w + 32 + j * 4);
      addSum(out, 0, d00, scales);
      addSum(out, 16, d01, scales);
      addSum(out, 32, d02, scales);
      addSum(out, 48, d03, scales);
      scales = unsignedScales(v + 32 + j * 4);
      addSum(out, 64, d10, scales);
      addSum(out, 80, d11, scales);
      addSum(out, 96, d12, scales);
      addSum(out, 112, d13, scales);
      scales = unsignedScales(u + 32 + j * 4);
      addSum(out, 128, d20, scales);
      addSum(out, 144, d21, scales);
      addSum(out, 160, d22, scales);
      addSum(out, 176, d23, scales);
      scales = unsignedScales(y + 32 + j * 4);
      addSum(out, 192, d30, scales);
      addSum(out, 208, d31, scales);
      addSum(out, 224, d32, scales);
      addSum(out, 240, d33, scales);
    }
    for (let token: usize = 0; token < 4; token++) {
      const d = v128.load_splat<f32>(x + token * 4, 1024);
      const sums = x + 1072 + token * 48;
      const at = out + token * 16;
      addQ4K(at, 0, w, sums, d);
      addQ4K(at, 64, v, sums, d);
      addQ4K(at, 128, u, sums, d);
      addQ4K(at, 192, y, sums, d);
    }
    w += Q4K_BLOCK_BYTES;
    v += Q4K_BLOCK_BYTES;
    u += Q4K_BLOCK_BYTES;
    y += Q4K_BLOCK_BYTES;
    x += 1232;
  }
}
