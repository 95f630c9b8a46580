// Eight-bit weights for signed dot products. Blocks have the length and header of dot-q8, but chunk k (16 bytes) of the i8
// holds columns 4 * k to 4 * k + 3 of the four rows, row by row. Activation kinds 1 and 2.
import { fma, loadHalves4 } from './vector-math';
import { dot, token0, token1, token2, token3 } from './signed-dot';
import { Q8_BLOCK_BYTES, Q8_MIN_BLOCK_BYTES } from './dot-q8';

export function signedQ8Tile1(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void { tile1(w, v, u, y, x, numBlocks, out, false); }
export function signedQ8MinTile1(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void { tile1(w, v, u, y, x, numBlocks, out, true); }
export function signedQ8Tile4(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void { tile4(w, v, u, y, x, numBlocks, out, false); }
export function signedQ8MinTile4(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void { tile4(w, v, u, y, x, numBlocks, out, true); }

// @ts-ignore: decorator
@inline
function rowScales(block: usize, hasMins: bool): v128 { return hasMins ? v128.load(block) : loadHalves4(block); }

// @ts-ignore: decorator
@inline
function addScaled(out: usize, at: usize, sum: v128, scales: v128, d: v128): void {
  v128.store(out + at, fma(f32x4.convert_i32x4_s(sum), f32x4.mul(scales, d), v128.load(out + at)));
}

/** Adds the mins of both halves, each times the scaled sum of the activations of its columns. */
// @ts-ignore: decorator
@inline
function addMins(out: usize, at: usize, block: usize, low: v128, high: v128): void {
  const withLow = fma(v128.load(block, 16), low, v128.load(out + at));
  v128.store(out + at, fma(v128.load(block, 32), high, withLow));
}

/** A group's 32 columns at `q` times the activations of one token, `low` columns 0 to 15 and `high` the others. */
// @ts-ignore: decorator
@inline
function dotBytes(q: usize, low: v128, high: v128): v128 {
  let d = dot(i32x4.splat(0), token0(low), v128.load(q));
  d = dot(d, token1(low), v128.load(q, 16));
  d = dot(d, token2(low), v128.load(q, 32));
  d = dot(d, token3(low), v128.load(q, 48));
  d = dot(d, token0(high), v128.load(q, 64));
  d = dot(d, token1(high), v128.load(q, 80));
  d = dot(d, token2(high), v128.load(q, 96));
  return dot(d, token3(high), v128.load(q, 112));
}

// @ts-ignore: decorator
@inline
function tile1(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize, hasMins: bool): void {
  const quants: usize = hasMins ? 48 : 8;
  const blockBytes = hasMins ? Q8_MIN_BLOCK_BYTES : Q8_BLOCK_BYTES;
  memory.fill(out, 0, 64);
  for (let b = 0; b < numBlocks; b++) {
    const low = v128.load(x);
    const high = v128.load(x, 16);
    const d = v128.load_splat<f32>(x, 32);
    addScaled(out, 0, dotBytes(w + quants, low, high), rowScales(w, hasMins), d);
    addScaled(out, 16, dotBytes(v + quants, low, high), rowScales(v, hasMins), d);
    addScaled(out, 32, dotBytes(u + quants, low, high), rowScales(u, hasMins), d);
    addScaled(out, 48, dotBytes(y + quants, low, high), rowScales(y, hasMins), d);
    if (hasMins) {
      const lowSum = v128.load_splat<f32>(x, 36);
      const highSum = v128.load_splat<f32>(x, 40);
      addMins(out, 0, w, lowSum, highSum);
      addMins(out, 16, v, lowSum, highSum);
      addMins(out, 32, u, lowSum, highSum);
      addMins(out, 48, y, lowSum, highSum);
    }
    w += blockBytes;
    v += blockBytes;
    u += blockBytes;
    y += blockBytes;
    x += 44;
  }
}

// @ts-ignore: decorator
@inline
function tile4(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize, hasMins: bool): void {
  const quants: usize = hasMins ? 48 : 8;
  const blockBytes = hasMins ? Q8_MIN_BLOCK_BYTES : Q8_BLOCK_BYTES;
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
    for (let c: usize = 0; c < 128; c += 16) {
      const s = v128.load(x + c);
      const n0 = v128.load(w + quants + c);
      const n1 = v128.load(v + quants + c);
      const n2 = v128.load(u + quants + c);
      const n3 = v128.load(y + quants + c);
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
    const s0 = rowScales(w, hasMins);
    const s1 = rowScales(v, hasMins);
    const s2 = rowScales(u, hasMins);
    const s3 = rowScales(y, hasMins);
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
    if (hasMins) {
      for (let token: usize = 0; token < 4; token++) {
        const low = v128.load_splat<f32>(x + token * 4, 144);
        const high = v128.load_splat<f32>(x + token * 4, 160);
        const at = out + token * 16;
        addMins(at, 0, w, low, high);
        addMins(at, 64, v, low, high);
        addMins(at, 128, u, low, high);
        addMins(at, 192, y, low, high);
      }
    }
    w += blockBytes;
    v += blockBytes;
    u += blockBytes;
    y += blockBytes;
    x += 176;
  }
}
