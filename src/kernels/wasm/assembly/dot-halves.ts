// Codebooks with a scale for each sixteen columns; otherwise as dot-codebook. Per block of 32 columns, 112 bytes: f32[2][4] row
// scales of the halves, i16[2][4] row sums of their values, 64 bytes of nibbles: low ones are the first half.
import { addScaled, highValues, lowValues } from './dot-codebook';
import { pairDot } from './dot-q4';

export const HALVES_BLOCK_BYTES: usize = 112;
const NIBBLES: usize = 48;

// @ts-ignore: decorator
@inline
function values(table: v128, q: v128, half: usize): v128 { return half ? highValues(table, q) : lowValues(table, q); }

// @ts-ignore: decorator
@inline
function offsets(w: usize, half: usize): v128 { return i32x4.shl(v128.load_ext<i16>(w + half * 8, 32), 7); }

export function halvesTile1(tableAt: usize, w: usize, x: usize, numBlocks: i32, out: usize): void {
  const table = v128.load(tableAt);
  let acc = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++) {
    for (let half: usize = 0; half < 2; half++) {
      let high = i16x8.splat(0);
      let low = i16x8.splat(0);
      for (let c: usize = 0; c < 4; c++) {
        const v = values(table, v128.load(w + NIBBLES + c * 16), half);
        const at = x + half * 16 + c * 4;
        high = i16x8.add(high, pairDot(v, v128.load_splat<u32>(at)));
        low = i16x8.add(low, pairDot(v, v128.load_splat<u32>(at, 32)));
      }
      acc = addScaled(acc, high, low, offsets(w, half), v128.load(w + half * 16), v128.load_splat<f32>(x, 64));
    }
    w += HALVES_BLOCK_BYTES;
    x += 68;
  }
  v128.store(out, acc);
}

export function halvesTile4(tableAt: usize, w: usize, x: usize, numBlocks: i32, out: usize): void {
  const table = v128.load(tableAt);
  let a0 = f32x4.splat(0);
  let a1 = f32x4.splat(0);
  let a2 = f32x4.splat(0);
  let a3 = f32x4.splat(0);
  for (let b = 0; b < numBlocks; b++) {
    for (let half: usize = 0; half < 2; half++) {
      let h0 = i16x8.splat(0);
      let h1 = i16x8.splat(0);
      let h2 = i16x8.splat(0);
      let h3 = i16x8.splat(0);
      let l0 = i16x8.splat(0);
      let l1 = i16x8.splat(0);
      let l2 = i16x8.splat(0);
      let l3 = i16x8.splat(0);
      for (let c: usize = 0; c < 4; c++) {
        const v = values(table, v128.load(w + NIBBLES + c * 16), half);
        const at = x + half * 16 + c * 4;
        h0 = i16x8.add(h0, pairDot(v, v128.load_splat<u32>(at)));
        l0 = i16x8.add(l0, pairDot(v, v128.load_splat<u32>(at, 32)));
        h1 = i16x8.add(h1, pairDot(v, v128.load_splat<u32>(at, 64)));
        l1 = i16x8.add(l1, pairDot(v, v128.load_splat<u32>(at, 96)));
        h2 = i16x8.add(h2, pairDot(v, v128.load_splat<u32>(at, 128)));
        l2 = i16x8.add(l2, pairDot(v, v128.load_splat<u32>(at, 160)));
        h3 = i16x8.add(h3, pairDot(v, v128.load_splat<u32>(at, 192)));
        l3 = i16x8.add(l3, pairDot(v, v128.load_splat<u32>(at, 224)));
      }
      const offset = offsets(w, half);
      const scales = v128.load(w + half * 16);
      a0 = addScaled(a0, h0, l0, offset, scales, v128.load_splat<f32>(x, 256));
      a1 = addScaled(a1, h1, l1, offset, scales, v128.load_splat<f32>(x, 260));
      a2 = addScaled(a2, h2, l2, offset, scales, v128.load_splat<f32>(x, 264));
      a3 = addScaled(a3, h3, l3, offset, scales, v128.load_splat<f32>(x, 268));
    }
    w += HALVES_BLOCK_BYTES;
    x += 272;
  }
  v128.store(out, a0);
  v128.store(out, a1, 16);
  v128.store(out, a2, 32);
  v128.store(out, a3, 48);
}
