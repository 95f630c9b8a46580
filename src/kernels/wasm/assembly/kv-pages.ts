// Packed KV pages: rounding of whole pages, and widening for attention. ../../kv-region.ts describes the layout,
// ../../contract.ts (PackPagesOp) the rounding: all packs write the same bytes.
import { address, takeChunk } from './control';
import { widenHalf } from './dot-float';
import { floatToHalf, fma, halfToFloat } from './vector-math';

const PAGE_TOKENS: i32 = 16;
export const PAGES_F32: i32 = 1;
const PAGES_Q8: i32 = 2;
const HALF_NAN: u32 = 0x7e00;

function headBytes(kind: i32, headDim: i32): usize {
  const scales = 2 * (headDim + PAGE_TOKENS);
  return <usize>(kind == PAGES_Q8 ? 2 * PAGE_TOKENS * headDim + scales : PAGE_TOKENS * headDim + 2 * scales);
}

/** Rows of `n` numbers, a multiple of four, each with a scale; returns their end. */
function widenQ8(p: usize, rows: i32, n: i32, out: usize): usize {
  let q = p + (<usize>rows << 1);
  for (let r = 0; r < rows; r++, p += 2) {
    const scale = f32x4.splat(halfToFloat(load<u16>(p)));
    for (let i = 0; i < n; i += 4, q += 4, out += 16) {
      const wide = i32x4.extend_low_i16x8_s(i16x8.extend_low_i8x16_s(v128.load32_zero(q)));
      v128.store(out, f32x4.mul(f32x4.convert_i32x4_s(wide), scale));
    }
  }
  return q;
}

/** The same with a min per row. The halves of a row are aligned to two bytes only. */
function widenQ4(p: usize, rows: i32, n: i32, out: usize): usize {
  const half = <usize>n >> 1;
  let q = p + (<usize>rows << 2);
  for (let r = 0; r < rows; r++, p += 2, q += half, out += half << 3) {
    const scale = f32x4.splat(halfToFloat(load<u16>(p)));
    const min = f32x4.splat(halfToFloat(load<u16>(p + (<usize>rows << 1))));
    let i: usize = 0;
    for (; i + 4 <= half; i += 4) {
      const wide = i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load32_zero(q + i)));
      v128.store(out + (i << 2), fma(f32x4.convert_i32x4_s(v128.and(wide, i32x4.splat(15))), scale, min));
      v128.store(out + ((half + i) << 2), fma(f32x4.convert_i32x4_s(i32x4.shr_u(wide, 4)), scale, min));
    }
    for (; i < half; i++) {
      const byte = load<u8>(q + i);
      const pair = fma(f32x4.convert_i32x4_s(i32x4(byte & 15, byte >> 4, 0, 0)), scale, min);
      store<f32>(out + (i << 2), f32x4.extract_lane(pair, 0));
      store<f32>(out + ((half + i) << 2), f32x4.extract_lane(pair, 1));
    }
  }
  return q;
}

/** One head of a packed page as f32: keys[headDim][16], values[16][headDim]. */
export function widenPacked(layer: usize, kind: i32, kvHead: i32, headDim: i32, keys: usize, values: usize): void {
  const p = layer + <usize>kvHead * headBytes(kind, headDim);
  if (kind == PAGES_Q8) widenQ8(widenQ8(p, headDim, PAGE_TOKENS, keys), PAGE_TOKENS, headDim, values);
  else widenQ4(widenQ4(p, headDim, PAGE_TOKENS, keys), PAGE_TOKENS, headDim, values);
}

/** Rounds up, so that the largest value needs no clamping; returns 0 if there is nothing to divide by. */
function storeScale(at: usize, value: f32): f32 {
  let bits = floatToHalf(value);
  if (halfToFloat(bits) < value) bits++;
  store<u16>(at, <u16>(bits >= 0x7c00 ? HALF_NAN : bits));
  return bits >= 0x7c00 ? 0 : halfToFloat(bits);
}

function halfBelow(value: f32): u32 {
  if (value == 0) return 0; // never -0
  const bits = floatToHalf(value);
  if (!(halfToFloat(bits) > value)) return bits;
  return bits >= 0x8000 ? bits + 1 : bits - 1;
}

function packQ8(x: usize, rows: i32, n: i32, p: usize): usize {
  let q = p + (<usize>rows << 1);
  for (let r = 0; r < rows; r++, p += 2) {
    let peak: f32 = 0;
    for (let i = 0; i < n; i++) peak = max(peak, abs(load<f32>(x + (<usize>i << 2)))); // keeps NaN
    const step = storeScale(p, peak / 127);
    for (let i = 0; i < n; i++, x += 4, q++) store<i8>(q, step == 0 ? 0 : <i8>nearest(load<f32>(x) / step));
  }
  return q;
}

// @ts-ignore: decorator
@inline
function nibble(x: f32, least: f32, step: f32): i32 { return step == 0 ? 0 : <i32>nearest((x - least) / step); }

function packQ4(x: usize, rows: i32, n: i32, p: usize): usize {
  const half = <usize>n >> 1;
  let q = p + (<usize>rows << 2);
  for (let r = 0; r < rows; r++, p += 2, x += half << 3) {
    let lowest = load<f32>(x);
    let highest = lowest;
    for (let i = 1; i < n; i++) {
      lowest = min(lowest, load<f32>(x + (<usize>i << 2)));
      highest = max(highest, load<f32>(x + (<usize>i << 2)));
    }
    const bits = halfBelow(lowest);
    const least = halfToFloat(bits);
    const step = storeScale(p, (highest - least) / 15);
    store<u16>(p + (<usize>rows << 1), <u16>((bits & 0x7c00) == 0x7c00 ? 0 : bits));
    for (let i: usize = 0; i < half; i++, q++) {
      store<u8>(q, <u8>(nibble(load<f32>(x + (i << 2)), least, step) | (nibble(load<f32>(x + ((half + i) << 2)), least, step) << 4)));
    }
  }
  return q;
}

/**
 * args: 2 base, 3 pageBytes, 4 layerBytes, 5 kvHeads, 6 headDim, 7 kind of the source pages; 8 base, 9 pageBytes, 10
 * layerBytes, 11 kind of the target pages; 12 pairs of pages, 13 pages, 14 first layer, 15 layers. A chunk is a head of a
 * page's layer.
 */
export function packPagesOp(op: usize, scratch: usize): void {
  const kvHeads = load<i32>(op, 20);
  const headDim = load<i32>(op, 24);
  const isFloat = load<i32>(op, 28) == PAGES_F32;
  const kind = load<i32>(op, 44);
  const layers = load<i32>(op, 60);
  const items = load<i32>(op, 52) * layers * kvHeads;
  const count = headDim * PAGE_TOKENS;
  for (let item = takeChunk(op); item < items; item = takeChunk(op)) {
    const head = item % kvHeads;
    const layer = <usize>(load<i32>(op, 56) + ((item / kvHeads) % layers));
    const pair = address(op, 48) + (<usize>(item / kvHeads / layers) << 3);
    const from = address(op, 8) + <usize>load<i32>(pair) * address(op, 12) + layer * address(op, 16);
    const to = address(op, 32) + <usize>load<i32>(pair, 4) * address(op, 36) + layer * address(op, 40) + <usize>head * headBytes(kind, headDim);
    const shift: usize = isFloat ? 2 : 1;
    let keys = from + (<usize>(head * count) << shift);
    let values = from + (<usize>((kvHeads + head) * count) << shift);
    if (!isFloat) {
      widenHalf(keys, scratch, count);
      widenHalf(values, scratch + (<usize>count << 2), count);
      keys = scratch;
      values = scratch + (<usize>count << 2);
    }
    if (kind == PAGES_Q8) packQ8(values, PAGE_TOKENS, headDim, packQ8(keys, headDim, PAGE_TOKENS, to));
    else packQ4(values, PAGE_TOKENS, headDim, packQ4(keys, headDim, PAGE_TOKENS, to));
  }
}
