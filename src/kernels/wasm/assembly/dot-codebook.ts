// Four-bit indices into a codebook of 16 signed bytes, four rows interleaved, scales per 32 columns.
// Per block of 32 columns, 88 bytes: f32[4] row scales, i16[4] row sums of the block's values, 64 bytes of nibbles (dot-q4).
// Values need all eight bits, so the activations must be the small operand: they are split as q + 128 = 16 * h + l
// (activation kinds 4 and 5), and 128 times the row sum is subtracted. 8 * 2 * 127 * 15 = 30480 fits 16 bits.
import { fma } from './vector-math';
import { pairDot } from './dot-q4';

export const CODEBOOK_BLOCK_BYTES: usize = 88;

// @ts-ignore: decorator
@inline
function lookUp(table: v128, indices: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i8x16.relaxed_swizzle(table, indices);
  return i8x16.swizzle(table, indices);
}

// @ts-ignore: decorator
@inline
export function lowValues(table: v128, q: v128): v128 { return lookUp(table, v128.and(q, i8x16.splat(0x0f))); }
// @ts-ignore: decorator
@inline
export function highValues(table: v128, q: v128): v128 { return lookUp(table, v128.and(i16x8.shr_u(q, 4), i8x16.splat(0x0f))); }

// @ts-ignore: decorator
@inline
function widened(dot: v128): v128 { return i32x4.dot_i16x8_s(dot, i16x8.splat(1)); }

// @ts-ignore: decorator
@inline
export function addScaled(acc: v128, high: v128, low: v128, offset: v128, scales: v128, d: v128): v128 {
  const sum = i32x4.sub(i32x4.add(i32x4.shl(widened(high), 4), widened(low)), offset);
  return fma(f32x4.convert_i32x4_s(sum), f32x4.mul(scales, d), acc);
}

// @ts-ignore: decorator
@inline
function offsets(w: usize): v128 { return i32x4.shl(v128.load_ext<i16>(w, 16), 7); }

export function codebookTile1(tableAt: usize, w: usize, x: usize, numBlocks: i32, out: usize): void {
  const table = v128.load(tableAt);
  let acc = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++) {
    let high = i16x8.splat(0);
    let low = i16x8.splat(0);
    for (let c: usize = 0; c < 4; c++) {
      const q = v128.load(w + 24 + c * 16);
      const at = x + c * 4;
      const first = lowValues(table, q);
      high = i16x8.add(high, pairDot(first, v128.load_splat<u32>(at)));
      low = i16x8.add(low, pairDot(first, v128.load_splat<u32>(at, 32)));
      const second = highValues(table, q);
      high = i16x8.add(high, pairDot(second, v128.load_splat<u32>(at, 16)));
      low = i16x8.add(low, pairDot(second, v128.load_splat<u32>(at, 48)));
    }
    acc = addScaled(acc, high, low, offsets(w), v128.load(w), v128.load_splat<f32>(x, 64));
    w += CODEBOOK_BLOCK_BYTES;
    x += 68;
  }
  v128.store(out, acc);
}

export function codebookTile4(tableAt: usize, w: usize, x: usize, numBlocks: i32, out: usize): void {
  const table = v128.load(tableAt);
  let a0 = f32x4.splat(0);
  let a1 = f32x4.splat(0);
  let a2 = f32x4.splat(0);
  let a3 = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++) {
    let h0 = i16x8.splat(0);
    let h1 = i16x8.splat(0);
    let h2 = i16x8.splat(0);
    let h3 = i16x8.splat(0);
    let l0 = i16x8.splat(0);
    let l1 = i16x8.splat(0);
    let l2 = i16x8.splat(0);
    let l3 = i16x8.splat(0);
    for (let c: usize = 0; c < 4; c++) {
      const q = v128.load(w + 24 + c * 16);
      const at = x + c * 4;
      let v = lowValues(table, q);
      h0 = i16x8.add(h0, pairDot(v, v128.load_splat<u32>(at)));
      l0 = i16x8.add(l0, pairDot(v, v128.load_splat<u32>(at, 32)));
      h1 = i16x8.add(h1, pairDot(v, v128.load_splat<u32>(at, 64)));
      l1 = i16x8.add(l1, pairDot(v, v128.load_splat<u32>(at, 96)));
      h2 = i16x8.add(h2, pairDot(v, v128.load_splat<u32>(at, 128)));
      l2 = i16x8.add(l2, pairDot(v, v128.load_splat<u32>(at, 160)));
      h3 = i16x8.add(h3, pairDot(v, v128.load_splat<u32>(at, 192)));
      l3 = i16x8.add(l3, pairDot(v, v128.load_splat<u32>(at, 224)));
      v = highValues(table, q);
      h0 = i16x8.add(h0, pairDot(v, v128.load_splat<u32>(at, 16)));
      l0 = i16x8.add(l0, pairDot(v, v128.load_splat<u32>(at, 48)));
      h1 = i16x8.add(h1, pairDot(v, v128.load_splat<u32>(at, 80)));
      l1 = i16x8.add(l1, pairDot(v, v128.load_splat<u32>(at, 112)));
      h2 = i16x8.add(h2, pairDot(v, v128.load_splat<u32>(at, 144)));
      l2 = i16x8.add(l2, pairDot(v, v128.load_splat<u32>(at, 176)));
      h3 = i16x8.add(h3, pairDot(v, v128.load_splat<u32>(at, 208)));
      l3 = i16x8.add(l3, pairDot(v, v128.load_splat<u32>(at, 240)));
    }
    const offset = offsets(w);
    const scales = v128.load(w);
    a0 = addScaled(a0, h0, l0, offset, scales, v128.load_splat<f32>(x, 256));
    a1 = addScaled(a1, h1, l1, offset, scales, v128.load_splat<f32>(x, 260));
    a2 = addScaled(a2, h2, l2, offset, scales, v128.load_splat<f32>(x, 264));
    a3 = addScaled(a3, h3, l3, offset, scales, v128.load_splat<f32>(x, 268));
    w += CODEBOOK_BLOCK_BYTES;
    x += 272;
  }
  v128.store(out, a0);
  v128.store(out, a1, 16);
  v128.store(out, a2, 32);
  v128.store(out, a3, 48);
}
