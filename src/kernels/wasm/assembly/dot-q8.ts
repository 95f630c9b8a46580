// Eight-bit weights, four rows interleaved, exact for every format with small integers times a scale per 32 columns.
// Per block of 32 columns: f16[4] row scales, then 128 bytes of i8; with mins f32[4] row scales, f32[2][4] mins of the two
// halves, then the i8: bytes 8 * p + 2 * r + i hold column 2 * p + i of row r. Activation kinds 1 and 2.
import { fma, loadHalves4 } from './vector-math';

export const Q8_BLOCK_BYTES: usize = 136;
export const Q8_MIN_BLOCK_BYTES: usize = 176;

// @ts-ignore: decorator
@inline
function pairs(w: usize, x: usize): v128 {
  return i32x4.dot_i16x8_s(v128.load_ext<i8>(w), v128.load_splat<u32>(x));
}

/** 32 columns of four rows times one token: i32x4, one lane per row. */
// @ts-ignore: decorator
@inline
function blockDot(w: usize, x: usize): v128 {
  let a = pairs(w, x);
  let b = pairs(w + 8, x + 4);
  a = i32x4.add(a, pairs(w + 16, x + 8));
  b = i32x4.add(b, pairs(w + 24, x + 12));
  a = i32x4.add(a, pairs(w + 32, x + 16));
  b = i32x4.add(b, pairs(w + 40, x + 20));
  a = i32x4.add(a, pairs(w + 48, x + 24));
  b = i32x4.add(b, pairs(w + 56, x + 28));
  a = i32x4.add(a, pairs(w + 64, x + 32));
  b = i32x4.add(b, pairs(w + 72, x + 36));
  a = i32x4.add(a, pairs(w + 80, x + 40));
  b = i32x4.add(b, pairs(w + 88, x + 44));
  a = i32x4.add(a, pairs(w + 96, x + 48));
  b = i32x4.add(b, pairs(w + 104, x + 52));
  a = i32x4.add(a, pairs(w + 112, x + 56));
  b = i32x4.add(b, pairs(w + 120, x + 60));
  return i32x4.add(a, b);
}

// @ts-ignore: decorator
@inline
function addScaled(acc: v128, dot: v128, rowScales: v128, d: v128): v128 {
  return fma(f32x4.convert_i32x4_s(dot), f32x4.mul(rowScales, d), acc);
}

export function q8Tile1(w: usize, x: usize, numBlocks: i32, out: usize): void { tile1(w, x, numBlocks, out, false); }
export function q8MinTile1(w: usize, x: usize, numBlocks: i32, out: usize): void { tile1(w, x, numBlocks, out, true); }
export function q8Tile4(w: usize, x: usize, numBlocks: i32, out: usize): void { tile4(w, x, numBlocks, out, false); }
export function q8MinTile4(w: usize, x: usize, numBlocks: i32, out: usize): void { tile4(w, x, numBlocks, out, true); }

// @ts-ignore: decorator
@inline
function tile1(w: usize, x: usize, numBlocks: i32, out: usize, hasMins: bool): void {
  let acc = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++) {
    const quants = w + (hasMins ? 48 : 8);
    acc = addScaled(acc, blockDot(quants, x), hasMins ? v128.load(w) : loadHalves4(w), v128.load_splat<f32>(x, 64));
    if (hasMins) {
      acc = fma(v128.load(w, 16), v128.load_splat<f32>(x, 68), acc);
      acc = fma(v128.load(w, 32), v128.load_splat<f32>(x, 72), acc);
    }
    w = quants + 128;
    x += 76;
  }
  v128.store(out, acc);
}

// @ts-ignore: decorator
@inline
function tile4(w: usize, x: usize, numBlocks: i32, out: usize, hasMins: bool): void {
  let a0 = f32x4.splat(0);
  let a1 = f32x4.splat(0);
  let a2 = f32x4.splat(0);
  let a3 = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++) {
    const scales = hasMins ? v128.load(w) : loadHalves4(w);
    const mins = w + 16;
    w += hasMins ? 48 : 8;
    let d0 = i32x4.splat(0);
    let d1 = i32x4.splat(0);
    let d2 = i32x4.splat(0);
    let d3 = i32x4.splat(0);
    for (let p: usize = 0; p < 64; p += 16, w += 32) {
      const w0 = v128.load_ext<i8>(w);
      const w1 = v128.load_ext<i8>(w, 8);
      const w2 = v128.load_ext<i8>(w, 16);
      const w3 = v128.load_ext<i8>(w, 24);
      const xp = x + p;
      d0 = i32x4.add(d0, i32x4.dot_i16x8_s(w0, v128.load_splat<u32>(xp)));
      d1 = i32x4.add(d1, i32x4.dot_i16x8_s(w0, v128.load_splat<u32>(xp, 64)));
      d2 = i32x4.add(d2, i32x4.dot_i16x8_s(w0, v128.load_splat<u32>(xp, 128)));
      d3 = i32x4.add(d3, i32x4.dot_i16x8_s(w0, v128.load_splat<u32>(xp, 192)));
      d0 = i32x4.add(d0, i32x4.dot_i16x8_s(w1, v128.load_splat<u32>(xp, 4)));
      d1 = i32x4.add(d1, i32x4.dot_i16x8_s(w1, v128.load_splat<u32>(xp, 68)));
      d2 = i32x4.add(d2, i32x4.dot_i16x8_s(w1, v128.load_splat<u32>(xp, 132)));
      d3 = i32x4.add(d3, i32x4.dot_i16x8_s(w1, v128.load_splat<u32>(xp, 196)));
      d0 = i32x4.add(d0, i32x4.dot_i16x8_s(w2, v128.load_splat<u32>(xp, 8)));
      d1 = i32x4.add(d1, i32x4.dot_i16x8_s(w2, v128.load_splat<u32>(xp, 72)));
      d2 = i32x4.add(d2, i32x4.dot_i16x8_s(w2, v128.load_splat<u32>(xp, 136)));
      d3 = i32x4.add(d3, i32x4.dot_i16x8_s(w2, v128.load_splat<u32>(xp, 200)));
      d0 = i32x4.add(d0, i32x4.dot_i16x8_s(w3, v128.load_splat<u32>(xp, 12)));
      d1 = i32x4.add(d1, i32x4.dot_i16x8_s(w3, v128.load_splat<u32>(xp, 76)));
      d2 = i32x4.add(d2, i32x4.dot_i16x8_s(w3, v128.load_splat<u32>(xp, 140)));
      d3 = i32x4.add(d3, i32x4.dot_i16x8_s(w3, v128.load_splat<u32>(xp, 204)));
    }
    a0 = addScaled(a0, d0, scales, v128.load_splat<f32>(x, 256));
    a1 = addScaled(a1, d1, scales, v128.load_splat<f32>(x, 260));
    a2 = addScaled(a2, d2, scales, v128.load_splat<f32>(x, 264));
    a3 = addScaled(a3, d3, scales, v128.load_splat<f32>(x, 268));
    if (hasMins) {
      const lo = v128.load(mins);
      const hi = v128.load(mins, 16);
      a0 = fma(hi, v128.load_splat<f32>(x, 288), fma(lo, v128.load_splat<f32>(x, 272), a0));
      a1 = fma(hi, v128.load_splat<f32>(x, 292), fma(lo, v128.load_splat<f32>(x, 276), a1));
      a2 = fma(hi, v128.load_splat<f32>(x, 296), fma(lo, v128.load_splat<f32>(x, 280), a2));
      a3 = fma(hi, v128.load_splat<f32>(x, 300), fma(lo, v128.load_splat<f32>(x, 284), a3));
    }
    x += 304;
  }
  v128.store(out, a0);
  v128.store(out, a1, 16);
  v128.store(out, a2, 32);
  v128.store(out, a3, 48);
}

/** Four groups of four rows, one token: four streams of weights share each broadcast of activations. */
export function q8Tile1Quad(w: usize, stride: usize, x: usize, numBlocks: i32, out: usize): void {
  let acc0 = f32x4.splat(0);
  let acc1 = f32x4.splat(0);
  let acc2 = f32x4.splat(0);
  let acc3 = f32x4.splat(0);
  let v = w + stride;
  let u = v + stride;
  let y = u + stride;
  for (let b = 0; b < numBlocks; b++) {
    const scales0 = loadHalves4(w);
    const scales1 = loadHalves4(v);
    const scales2 = loadHalves4(u);
    const scales3 = loadHalves4(y);
    let d0 = i32x4.splat(0);
    let d1 = i32x4.splat(0);
    let d2 = i32x4.splat(0);
    let d3 = i32x4.splat(0);
    let s: v128;
    for (let p: usize = 0; p < 64; p += 16) {
      const xp = x + p;
      s = v128.load_splat<u32>(xp);
      d0 = i32x4.add(d0, i32x4.dot_i16x8_s(v128.load_ext<i8>(w, 8), s));
      d1 = i32x4.add(d1, i32x4.dot_i16x8_s(v128.load_ext<i8>(v, 8), s));
      d2 = i32x4.add(d2, i32x4.dot_i16x8_s(v128.load_ext<i8>(u, 8), s));
      d3 = i32x4.add(d3, i32x4.dot_i16x8_s(v128.load_ext<i8>(y, 8), s));
      s = v128.load_splat<u32>(xp, 4);
      d0 = i32x4.add(d0, i32x4.dot_i16x8_s(v128.load_ext<i8>(w, 16), s));
      d1 = i32x4.add(d1, i32x4.dot_i16x8_s(v128.load_ext<i8>(v, 16), s));
      d2 = i32x4.add(d2, i32x4.dot_i16x8_s(v128.load_ext<i8>(u, 16), s));
      d3 = i32x4.add(d3, i32x4.dot_i16x8_s(v128.load_ext<i8>(y, 16), s));
      s = v128.load_splat<u32>(xp, 8);
      d0 = i32x4.add(d0, i32x4.dot_i16x8_s(v128.load_ext<i8>(w, 24), s));
      d1 = i32x4.add(d1, i32x4.dot_i16x8_s(v128.load_ext<i8>(v, 24), s));
      d2 = i32x4.add(d2, i32x4.dot_i16x8_s(v128.load_ext<i8>(u, 24), s));
      d3 = i32x4.add(d3, i32x4.dot_i16x8_s(v128.load_ext<i8>(y, 24), s));
      s = v128.load_splat<u32>(xp, 12);
      d0 = i32x4.add(d0, i32x4.dot_i16x8_s(v128.load_ext<i8>(w, 32), s));
      d1 = i32x4.add(d1, i32x4.dot_i16x8_s(v128.load_ext<i8>(v, 32), s));
      d2 = i32x4.add(d2, i32x4.dot_i16x8_s(v128.load_ext<i8>(u, 32), s));
      d3 = i32x4.add(d3, i32x4.dot_i16x8_s(v128.load_ext<i8>(y, 32), s));
      w += 32;
      v += 32;
      u += 32;
      y += 32;
    }
    const d = v128.load_splat<f32>(x, 64);
    acc0 = addScaled(acc0, d0, scales0, d);
    acc1 = addScaled(acc1, d1, scales1, d);
    acc2 = addScaled(acc2, d2, scales2, d);
    acc3 = addScaled(acc3, d3, scales3, d);
    w += 8;
    v += 8;
    u += 8;
    y += 8;
    x += 76;
  }
  v128.store(out, acc0);
  v128.store(out, acc1, 16);
  v128.store(out, acc2, 32);
  v128.store(out, acc3, 48);
}
