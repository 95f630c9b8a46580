// K-quants, four rows interleaved, blocks of 256 columns, activation kind 3.
// All sums are integers until the end of the block of 256, as the format intends.
//
// Q4_K, 608 bytes: f32[4] d, f32[4] dmin, scales u8[4 pairs][4 rows][2], mins the same, then 8 nibble blocks of 64 bytes (dot-q4).
// Q6_K, 848 bytes: f32[4] d, scales i8[8 pairs][4 rows][2], then 8 blocks of 96 bytes: 64 of low nibbles (as dot-q4), 32 of
//   high bits: byte 4 * r + i of chunk h holds, from the low bits up, columns 8h + i, 8h + 4 + i, 16 + 8h + i, 16 + 8h + 4 + i.
// A pair is two neighbouring sub-blocks: one 8-byte load gives both scales of four rows.
import { fma } from './vector-math';
import { nibbleBlockDot, nibbleDot, pairDot } from './dot-q4';

export const Q4K_BLOCK_BYTES: usize = 608;
export const Q6K_BLOCK_BYTES: usize = 848;

/** [a0 b0 a1 b1 …] to [a0 a0 a1 a1 …]: the scale of a row for both of its 16-bit partial sums. */
// @ts-ignore: decorator
@inline
function firstOfPairs(v: v128): v128 { return i16x8.shuffle(v, v, 0, 0, 2, 2, 4, 4, 6, 6); }
// @ts-ignore: decorator
@inline
function secondOfPairs(v: v128): v128 { return i16x8.shuffle(v, v, 1, 1, 3, 3, 5, 5, 7, 7); }

export function q4kTile1(w: usize, x: usize, numBlocks: i32, out: usize): void {
  let acc = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++) {
    let sum = i32x4.splat(0);
    let minSum = i32x4.splat(0);
    for (let j: usize = 0; j < 4; j++) {
      const scales = v128.load_ext<u8>(w + 32 + j * 8);
      const mins = v128.load_ext<u8>(w + 64 + j * 8);
      const quants = w + 96 + j * 128;
      sum = i32x4.add(sum, i32x4.dot_i16x8_s(nibbleBlockDot(quants, v128.load(x + j * 64), v128.load(x + j * 64, 16)), firstOfPairs(scales)));
      sum = i32x4.add(sum, i32x4.dot_i16x8_s(nibbleBlockDot(quants + 64, v128.load(x + j * 64, 32), v128.load(x + j * 64, 48)), secondOfPairs(scales)));
      minSum = i32x4.add(minSum, i32x4.dot_i16x8_s(mins, v128.load_splat<u32>(x + 292 + j * 4)));
    }
    acc = addK(acc, sum, minSum, v128.load(w), v128.load(w, 16), v128.load_splat<f32>(x, 256));
    w += Q4K_BLOCK_BYTES;
    x += 308;
  }
  v128.store(out, acc);
}

// @ts-ignore: decorator
@inline
function addK(acc: v128, sum: v128, minSum: v128, d: v128, dmin: v128, xd: v128): v128 {
  const withSum = fma(f32x4.convert_i32x4_s(sum), f32x4.mul(d, xd), acc);
  return fma(f32x4.convert_i32x4_s(minSum), f32x4.neg(f32x4.mul(dmin, xd)), withSum);
}

// @ts-ignore: decorator
@inline
function nibbles(w: usize, chunk: usize, high: bool): v128 {
  const v = v128.load(w + chunk * 16);
  return v128.and(high ? i16x8.shr_u(v, 4) : v, i8x16.splat(0x0f));
}

export function q4kTile4(w: usize, x: usize, numBlocks: i32, out: usize): void {
  let a0 = f32x4.splat(0);
  let a1 = f32x4.splat(0);
  let a2 = f32x4.splat(0);
  let a3 = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++) {
    let s0 = i32x4.splat(0);
    let s1 = i32x4.splat(0);
    let s2 = i32x4.splat(0);
    let s3 = i32x4.splat(0);
    for (let j: usize = 0; j < 8; j++) {
      const pair = v128.load_ext<u8>(w + 32 + (j >> 1) * 8);
      const scale = j & 1 ? secondOfPairs(pair) : firstOfPairs(pair);
      const q = w + 96 + j * 64;
      const xj = x + j * 32;
      const q0 = v128.load(q);
      const q1 = v128.load(q, 16);
      const q2 = v128.load(q, 32);
      const q3 = v128.load(q, 48);
      const d0 = nibbleDot(q0, q1, q2, q3, v128.load(xj), v128.load(xj, 16));
      const d1 = nibbleDot(q0, q1, q2, q3, v128.load(xj, 256), v128.load(xj, 272));
      const d2 = nibbleDot(q0, q1, q2, q3, v128.load(xj, 512), v128.load(xj, 528));
      const d3 = nibbleDot(q0, q1, q2, q3, v128.load(xj, 768), v128.load(xj, 784));
      s0 = i32x4.add(s0, i32x4.dot_i16x8_s(d0, scale));
      s1 = i32x4.add(s1, i32x4.dot_i16x8_s(d1, scale));
      s2 = i32x4.add(s2, i32x4.dot_i16x8_s(d2, scale));
      s3 = i32x4.add(s3, i32x4.dot_i16x8_s(d3, scale));
    }
    const d = v128.load(w);
    const dmin = v128.load(w, 16);
    const sums = x + 1040 + 32;
    a0 = addK(a0, s0, minDot(w + 64, sums), d, dmin, v128.load_splat<f32>(x, 1024));
    a1 = addK(a1, s1, minDot(w + 64, sums + 48), d, dmin, v128.load_splat<f32>(x, 1028));
    a2 = addK(a2, s2, minDot(w + 64, sums + 96), d, dmin, v128.load_splat<f32>(x, 1032));
    a3 = addK(a3, s3, minDot(w + 64, sums + 144), d, dmin, v128.load_splat<f32>(x, 1036));
    w += Q4K_BLOCK_BYTES;
    x += 1232;
  }
  v128.store(out, a0);
  v128.store(out, a1, 16);
  v128.store(out, a2, 32);
  v128.store(out, a3, 48);
}

// @ts-ignore: decorator
@inline
function minDot(mins: usize, sums: usize): v128 {
  const a = i32x4.dot_i16x8_s(v128.load_ext<u8>(mins), v128.load_splat<u32>(sums));
  const b = i32x4.dot_i16x8_s(v128.load_ext<u8>(mins, 8), v128.load_splat<u32>(sums, 4));
  const c = i32x4.dot_i16x8_s(v128.load_ext<u8>(mins, 16), v128.load_splat<u32>(sums, 8));
  const e = i32x4.dot_i16x8_s(v128.load_ext<u8>(mins, 24), v128.load_splat<u32>(sums, 12));
  return i32x4.add(i32x4.add(a, b), i32x4.add(c, e));
}

/** Chunk `c` (0-3 low columns, 4-7 high columns) of a Q6_K block of 32: 16 values of 6 bits. */
// @ts-ignore: decorator
@inline
function sixBits(q: usize, c: usize): v128 {
  const low = nibbles(q, c & 3, c >= 4);
  const highs = v128.load(q + 64 + ((c >> 1) & 1) * 16);
  const place = (c & 1) + (c >> 2) * 2;
  const moved = place == 0 ? i16x8.shl(highs, 4) : place == 1 ? i16x8.shl(highs, 2) : place == 2 ? highs : i16x8.shr_u(highs, 2);
  return v128.or(low, v128.and(moved, i8x16.splat(0x30)));
}

// Six bits times seven: 2 * 63 * 127 = 16002, so only two products fit in 16 bits before they are widened by a scale.
// @ts-ignore: decorator
@inline
function half6(q: usize, x: usize, c: usize, scale: v128): v128 {
  const a = i16x8.add(pairDot(v128.load_splat<u32>(x), sixBits(q, c)), pairDot(v128.load_splat<u32>(x, 4), sixBits(q, c + 1)));
  const b = i16x8.add(pairDot(v128.load_splat<u32>(x, 8), sixBits(q, c + 2)), pairDot(v128.load_splat<u32>(x, 12), sixBits(q, c + 3)));
  return i32x4.add(i32x4.dot_i16x8_s(a, scale), i32x4.dot_i16x8_s(b, scale));
}

// @ts-ignore: decorator
@inline
function add6(acc: v128, sum: v128, offsetSum: v128, d: v128, xd: v128): v128 {
  const exact = i32x4.sub(sum, i32x4.shl(offsetSum, 5));
  return fma(f32x4.convert_i32x4_s(exact), f32x4.mul(d, xd), acc);
}

/** Sum over the 16 sub-blocks of scale times sum of activations; 32 times that is the excess of the offset of 32. */
// @ts-ignore: decorator
@inline
function offsetDot(scales: usize, sums: usize): v128 {
  let total = i32x4.splat(0);
  for (let p: usize = 0; p < 8; p++) {
    total = i32x4.add(total, i32x4.dot_i16x8_s(v128.load_ext<i8>(scales + p * 8), v128.load_splat<u32>(sums + p * 4)));
  }
  return total;
}

export function q6kTile1(w: usize, x: usize, numBlocks: i32, out: usize): void {
  let acc = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++) {
    let sum = i32x4.splat(0);
    for (let j: usize = 0; j < 8; j++) {
      const pair = v128.load_ext<i8>(w + 16 + j * 8);
      const q = w + 80 + j * 96;
      sum = i32x4.add(sum, half6(q, x + j * 32, 0, firstOfPairs(pair)));
      sum = i32x4.add(sum, half6(q, x + j * 32 + 16, 4, secondOfPairs(pair)));
    }
    acc = add6(acc, sum, offsetDot(w + 16, x + 260), v128.load(w), v128.load_splat<f32>(x, 256));
    w += Q6K_BLOCK_BYTES;
    x += 308;
  }
  v128.store(out, acc);
}

// @ts-ignore: decorator
@inline
function step6(sum: v128, x: usize, n0: v128, n1: v128, scale: v128): v128 {
  const dot = i16x8.add(pairDot(v128.load_splat<u32>(x), n0), pairDot(v128.load_splat<u32>(x, 4), n1));
  return i32x4.add(sum, i32x4.dot_i16x8_s(dot, scale));
}

export function q6kTile4(w: usize, x: usize, numBlocks: i32, out: usize): void {
  let a0 = f32x4.splat(0);
  let a1 = f32x4.splat(0);
  let a2 = f32x4.splat(0);
  let a3 = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++) {
    let s0 = i32x4.splat(0);
    let s1 = i32x4.splat(0);
    let s2 = i32x4.splat(0);
    let s3 = i32x4.splat(0);
    for (let j: usize = 0; j < 8; j++) {
      const pair = v128.load_ext<i8>(w + 16 + j * 8);
      const q = w + 80 + j * 96;
      const xj = x + j * 32;
      let scale = firstOfPairs(pair);
      let n0 = sixBits(q, 0);
      let n1 = sixBits(q, 1);
      s0 = step6(s0, xj + 0, n0, n1, scale);
      s1 = step6(s1, xj + 256, n0, n1, scale);
      s2 = step6(s2, xj + 512, n0, n1, scale);
      s3 = step6(s3, xj + 768, n0, n1, scale);
      n0 = sixBits(q, 2);
      n1 = sixBits(q, 3);
      s0 = step6(s0, xj + 8, n0, n1, scale);
      s1 = step6(s1, xj + 264, n0, n1, scale);
      s2 = step6(s2, xj + 520, n0, n1, scale);
      s3 = step6(s3, xj + 776, n0, n1, scale);
      scale = secondOfPairs(pair);
      n0 = sixBits(q, 4);
      n1 = sixBits(q, 5);
      s0 = step6(s0, xj + 16, n0, n1, scale);
      s1 = step6(s1, xj + 272, n0, n1, scale);
      s2 = step6(s2, xj + 528, n0, n1, scale);
      s3 = step6(s3, xj + 784, n0, n1, scale);
      n0 = sixBits(q, 6);
      n1 = sixBits(q, 7);
      s0 = step6(s0, xj + 24, n0, n1, scale);
      s1 = step6(s1, xj + 280, n0, n1, scale);
      s2 = step6(s2, xj + 536, n0, n1, scale);
      s3 = step6(s3, xj + 792, n0, n1, scale);
    }
    const d = v128.load(w);
    const sums = x + 1040;
    a0 = add6(a0, s0, offsetDot(w + 16, sums), d, v128.load_splat<f32>(x, 1024));
    a1 = add6(a1, s1, offsetDot(w + 16, sums + 48), d, v128.load_splat<f32>(x, 1028));
    a2 = add6(a2, s2, offsetDot(w + 16, sums + 96), d, v128.load_splat<f32>(x, 1032));
    a3 = add6(a3, s3, offsetDot(w + 16, sums + 144), d, v128.load_splat<f32>(x, 1036));
    w += Q6K_BLOCK_BYTES;
    x += 1232;
  }
  v128.store(out, a0);
  v128.store(out, a1, 16);
  v128.store(out, a2, 32);
  v128.store(out, a3, 48);
}
