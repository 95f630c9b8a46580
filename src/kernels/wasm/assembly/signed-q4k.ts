// Q4_K for signed dot products: the layout of dot-k, but with scales as u8[8 sub-blocks][4 rows]. Activation kind 3.
import { fma } from './vector-math';
import { SUMS } from './signed-k';
import { addNibbles1, addNibbles4, FORMAT_Q4K } from './signed-nibbles';
import { Q4K_BLOCK_BYTES } from './dot-k';

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
      addNibbles1(FORMAT_Q4K, i32x4.splat(0), w, v, u, y, 88 + j * 64, 32 + j * 4, x + j * 32, out);
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
      addNibbles4(FORMAT_Q4K, i32x4.splat(0), w, v, u, y, 88 + j * 64, 32 + j * 4, x + j * 128, out);
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
