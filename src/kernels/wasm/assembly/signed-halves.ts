// Codebooks with a scale for each sixteen columns, for signed dot products, in the layout of dot-halves. Row sums are not
// needed. Activation kinds 4 and 5.
import { fma } from './vector-math';
import { dot, token0, token1, token2, token3 } from './signed-dot';
import { highValues, lowValues } from './dot-codebook';
import { HALVES_BLOCK_BYTES } from './dot-halves';

const NIBBLES: usize = 48;

// @ts-ignore: decorator
@inline
function values(table: v128, q: usize, half: usize): v128 {
  return half ? highValues(table, v128.load(q)) : lowValues(table, v128.load(q));
}

/** One group times one token: adds f32x4 at `out`. */
function addGroup1(table: v128, w: usize, x: usize, numBlocks: i32, out: usize): void {
  let acc = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++, w += HALVES_BLOCK_BYTES, x += 36) {
    const d = v128.load_splat<f32>(x, 32);
    for (let half: usize = 0; half < 2; half++) {
      const s = v128.load(x + half * 16);
      let sum = dot(i32x4.splat(0), token0(s), values(table, w + NIBBLES, half));
      sum = dot(sum, token1(s), values(table, w + NIBBLES + 16, half));
      sum = dot(sum, token2(s), values(table, w + NIBBLES + 32, half));
      sum = dot(sum, token3(s), values(table, w + NIBBLES + 48, half));
      acc = fma(f32x4.convert_i32x4_s(sum), f32x4.mul(v128.load(w + half * 16), d), acc);
    }
  }
  v128.store(out, acc);
}

/** One group times four tokens: f32x4[4 tokens] at `out`. */
function addGroup4(table: v128, w: usize, x: usize, numBlocks: i32, out: usize): void {
  let a0 = f32x4.splat(0);
  let a1 = f32x4.splat(0);
  let a2 = f32x4.splat(0);
  let a3 = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++, w += HALVES_BLOCK_BYTES, x += 144) {
    const d = v128.load(x, 128);
    for (let half: usize = 0; half < 2; half++) {
      let s0 = i32x4.splat(0);
      let s1 = i32x4.splat(0);
      let s2 = i32x4.splat(0);
      let s3 = i32x4.splat(0);
      for (let c: usize = 0; c < 64; c += 16) {
        const v = values(table, w + NIBBLES + c, half);
        const s = v128.load(x + half * 64 + c);
        s0 = dot(s0, token0(s), v);
        s1 = dot(s1, token1(s), v);
        s2 = dot(s2, token2(s), v);
        s3 = dot(s3, token3(s), v);
      }
      const scales = v128.load(w + half * 16);
      a0 = fma(f32x4.convert_i32x4_s(s0), f32x4.mul(scales, token0(d)), a0);
      a1 = fma(f32x4.convert_i32x4_s(s1), f32x4.mul(scales, token1(d)), a1);
      a2 = fma(f32x4.convert_i32x4_s(s2), f32x4.mul(scales, token2(d)), a2);
      a3 = fma(f32x4.convert_i32x4_s(s3), f32x4.mul(scales, token3(d)), a3);
    }
  }
  v128.store(out, a0);
  v128.store(out, a1, 16);
  v128.store(out, a2, 32);
  v128.store(out, a3, 48);
}

/** Sixteen rows, one token. */
export function signedHalvesTile1(tableAt: usize, w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  const table = v128.load(tableAt);
  addGroup1(table, w, x, numBlocks, out);
  addGroup1(table, v, x, numBlocks, out + 16);
  addGroup1(table, u, x, numBlocks, out + 32);
  addGroup1(table, y, x, numBlocks, out + 48);
}

/** Sixteen rows, four tokens. */
export function signedHalvesTile4(tableAt: usize, w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  const table = v128.load(tableAt);
  addGroup4(table, w, x, numBlocks, out);
  addGroup4(table, v, x, numBlocks, out + 64);
  addGroup4(table, u, x, numBlocks, out + 128);
  addGroup4(table, y, x, numBlocks, out + 192);
}
