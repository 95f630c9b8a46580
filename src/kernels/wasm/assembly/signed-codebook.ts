// Codebook formats for signed dot products, in the layout of dot-codebook. Values and activations keep their eight bits:
// nothing is split, and row sums are not needed. Activation kinds 4 and 5.
import { fma } from './vector-math';
import { dot, token0, token1, token2, token3 } from './signed-dot';
import { CODEBOOK_BLOCK_BYTES, highValues, lowValues } from './dot-codebook';

// @ts-ignore: decorator
@inline
function addScaled(out: usize, at: usize, sum: v128, scales: v128, d: v128): void {
  v128.store(out + at, fma(f32x4.convert_i32x4_s(sum), f32x4.mul(scales, d), v128.load(out + at)));
}

/** Sixteen rows, one token. */
export function signedCodebookTile1(tableAt: usize, w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  const table = v128.load(tableAt);
  memory.fill(out, 0, 64);
  for (let b = 0; b < numBlocks; b++) {
    const low = v128.load(x);
    const high = v128.load(x, 16);
    let q0 = v128.load(w, 24);
    let q1 = v128.load(v, 24);
    let q2 = v128.load(u, 24);
    let q3 = v128.load(y, 24);
    let t = token0(low);
    let d0 = dot(i32x4.splat(0), t, lowValues(table, q0));
    let d1 = dot(i32x4.splat(0), t, lowValues(table, q1));
    let d2 = dot(i32x4.splat(0), t, lowValues(table, q2));
    let d3 = dot(i32x4.splat(0), t, lowValues(table, q3));
    t = token0(high);
    d0 = dot(d0, t, highValues(table, q0));
    d1 = dot(d1, t, highValues(table, q1));
    d2 = dot(d2, t, highValues(table, q2));
    d3 = dot(d3, t, highValues(table, q3));
    q0 = v128.load(w, 40);
    q1 = v128.load(v, 40);
    q2 = v128.load(u, 40);
    q3 = v128.load(y, 40);
    t = token1(low);
    d0 = dot(d0, t, lowValues(table, q0));
    d1 = dot(d1, t, lowValues(table, q1));
    d2 = dot(d2, t, lowValues(table, q2));
    d3 = dot(d3, t, lowValues(table, q3));
    t = token1(high);
    d0 = dot(d0, t, highValues(table, q0));
    d1 = dot(d1, t, highValues(table, q1));
    d2 = dot(d2, t, highValues(table, q2));
    d3 = dot(d3, t, highValues(table, q3));
    q0 = v128.load(w, 56);
    q1 = v128.load(v, 56);
    q2 = v128.load(u, 56);
    q3 = v128.load(y, 56);
    t = token2(low);
    d0 = dot(d0, t, lowValues(table, q0));
    d1 = dot(d1, t, lowValues(table, q1));
    d2 = dot(d2, t, lowValues(table, q2));
    d3 = dot(d3, t, lowValues(table, q3));
    t = token2(high);
    d0 = dot(d0, t, highValues(table, q0));
    d1 = dot(d1, t, highValues(table, q1));
    d2 = dot(d2, t, highValues(table, q2));
    d3 = dot(d3, t, highValues(table, q3));
    q0 = v128.load(w, 72);
    q1 = v128.load(v, 72);
    q2 = v128.load(u, 72);
    q3 = v128.load(y, 72);
    t = token3(low);
    d0 = dot(d0, t, lowValues(table, q0));
    d1 = dot(d1, t, lowValues(table, q1));
    d2 = dot(d2, t, lowValues(table, q2));
    d3 = dot(d3, t, lowValues(table, q3));
    t = token3(high);
    d0 = dot(d0, t, highValues(table, q0));
    d1 = dot(d1, t, highValues(table, q1));
    d2 = dot(d2, t, highValues(table, q2));
    d3 = dot(d3, t, highValues(table, q3));
    const d = v128.load_splat<f32>(x, 32);
    addScaled(out, 0, d0, v128.load(w), d);
    addScaled(out, 16, d1, v128.load(v), d);
    addScaled(out, 32, d2, v128.load(u), d);
    addScaled(out, 48, d3, v128.load(y), d);
    w += CODEBOOK_BLOCK_BYTES;
    v += CODEBOOK_BLOCK_BYTES;
    u += CODEBOOK_BLOCK_BYTES;
    y += CODEBOOK_BLOCK_BYTES;
    x += 36;
  }
}

/** Sixteen rows, four tokens. */
export function signedCodebookTile4(tableAt: usize, w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  const table = v128.load(tableAt);
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
      const q0 = v128.load(w + c, 24);
      const q1 = v128.load(v + c, 24);
      const q2 = v128.load(u + c, 24);
      const q3 = v128.load(y + c, 24);
      let s = v128.load(x + c);
      let n0 = lowValues(table, q0);
      let n1 = lowValues(table, q1);
      let n2 = lowValues(table, q2);
      let n3 = lowValues(table, q3);
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
      n0 = highValues(table, q0);
      n1 = highValues(table, q1);
      n2 = highValues(table, q2);
      n3 = highValues(table, q3);
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
    const s0 = v128.load(w);
    const s1 = v128.load(v);
    const s2 = v128.load(u);
    const s3 = v128.load(y);
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
    w += CODEBOOK_BLOCK_BYTES;
    v += CODEBOOK_BLOCK_BYTES;
    u += CODEBOOK_BLOCK_BYTES;
    y += CODEBOOK_BLOCK_BYTES;
    x += 144;
  }
}
