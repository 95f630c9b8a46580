// Activations become small integers before products with packed weights. Tokens are laid out in tiles of T (1 or 4), so
// that the inner loops advance one pointer with constant offsets.
//
// kind 0, for Q4_0:       per tile and block of 32:   i8[T][32], then f32[T] d, i32[T] 8 * sum
// kind 1, blocks of 32:   per tile and block of 32:   i16[T][32], then f32[3][T]: d, d * sum of the first 16, of the last 16
// kind 2, blocks of 256:  the same layout; d is that of the block of 256
// kinds 4 and 5, for codebooks: per tile and block of 32: u8[T][64]: high nibbles of q + 128, then low ones; then f32[T] d, from
//                         the block of 32 (4) or of 256 (5)
// kind 6, for BF16:      per token: f32[cols], rounded to bfloat16; always tiles of one
// kind 3, for K-quants:   per tile and block of 256:  i8[T][256], then f32[T] d, then i16[T][24]: sums of 16 (16), of 32 (8)
//
// The signed-dot build stores every kind but 6 as i8[cols / 4][T][4], so that one load has four columns of all tokens:
// kinds 0, 4, 5:          per tile and block of 32:   the i8, then f32[T] d
// kinds 1, 2:             per tile and block of 32:   the i8, then f32[3][T] as above
// kind 3:                 as above, except for the order of the i8
import { floatToHalf, halfToFloat, horizontalMax } from './vector-math';

export const KIND_Q4: i32 = 0;
export const KIND_I16: i32 = 1;
export const KIND_I16_K: i32 = 2;
export const KIND_K: i32 = 3;
export const KIND_SPLIT: i32 = 4;
export const KIND_SPLIT_K: i32 = 5;
export const KIND_BF16: i32 = 6;

export function activationStride(kind: i32, cols: i32, tile: i32): usize {
  if (kind == KIND_K) return <usize>(cols / 256 * tile * 308);
  if (kind == KIND_BF16) return <usize>(cols * tile * 4);
  return <usize>(cols / 32 * tile) * blockStride(kind);
}

/** Bytes of 32 columns of a token; not for kinds 3 and 6. */
function blockStride(kind: i32): usize {
  if (SIGNED_DOT) return kind == KIND_I16 || kind == KIND_I16_K ? 44 : 36;
  return kind == KIND_Q4 ? 40 : kind >= KIND_SPLIT ? 68 : 76;
}

function absMax(x: usize, count: i32): f32 {
  let m = f32x4.splat(0);
  for (let i = 0; i < count; i += 4) m = f32x4.max(m, f32x4.abs(v128.load(x + (<usize>i << 2))));
  return horizontalMax(m);
}

/** The value of largest magnitude, sign kept, the first one on ties. */
function signedMax(x: usize, count: i32): f32 {
  const limit = absMax(x, count);
  for (let i = 0; i < count; i++) {
    const v = load<f32>(x + (<usize>i << 2));
    if (abs(v) == limit) return v;
  }
  return limit;
}

// @ts-ignore: decorator
@inline
function rounded4(x: usize, factor: f32): v128 {
  return i32x4.min_s(i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(v128.load(x), f32x4.splat(factor)))), i32x4.splat(127));
}

/** Stores 16 columns of a token as i8; in tiles of four, the signed-dot build leaves space for the other tokens' columns. */
// @ts-ignore: decorator
@inline
function storeBytes(at: usize, half: usize, bytes: v128, tile: usize): void {
  if (!SIGNED_DOT || tile == 1) {
    v128.store(at + half * 16, bytes);
    return;
  }
  at += half * 64;
  v128.store_lane<u32>(at, bytes, 0);
  v128.store_lane<u32>(at, bytes, 1, 16);
  v128.store_lane<u32>(at, bytes, 2, 32);
  v128.store_lane<u32>(at, bytes, 3, 48);
}

/** Rounds 32 values to i8 at `q8` and i16 at `q16`, unless those are 0; sums of the two halves go to i32[2] at `halfSum`. */
// @ts-ignore: decorator
@inline
function round32(x: usize, factor: f32, q8: usize, q16: usize, halfSum: usize, tile: usize): void {
  for (let half: usize = 0; half < 2; half++) {
    const p = x + half * 64;
    const a = i16x8.narrow_i32x4_s(rounded4(p, factor), rounded4(p + 16, factor));
    const b = i16x8.narrow_i32x4_s(rounded4(p + 32, factor), rounded4(p + 48, factor));
    if (q8) storeBytes(q8, half, i8x16.narrow_i16x8_s(a, b), tile);
    if (q16) {
      v128.store(q16 + half * 32, a);
      v128.store(q16 + half * 32 + 16, b);
    }
    const s = i32x4.extadd_pairwise_i16x8_s(i16x8.add(a, b));
    store<i32>(halfSum + half * 4, i32x4.extract_lane(s, 0) + i32x4.extract_lane(s, 1) + i32x4.extract_lane(s, 2) + i32x4.extract_lane(s, 3));
  }
}

function factorOf32(x: usize, dOut: usize): f32 {
  const amax = absMax(x, 32);
  store<f32>(dOut, halfToFloat(floatToHalf(amax / 127)));
  return amax == 0 ? 0 : <f32>127 / amax;
}

/** Rounds one token (row of `cols` values at `x`) into lane `lane` of its tile at `tileBase`; x = 0 writes a zero token. */
export function roundToken(kind: i32, x: usize, cols: i32, tileBase: usize, tile: i32, lane: i32, scratch: usize): void {
  const t = <usize>tile;
  const l = <usize>lane;
  if (kind == KIND_K) {
    const stride = t * 308;
    for (let b = 0, n = cols / 256; b < n; b++, tileBase += stride) {
      const q = tileBase + l * (SIGNED_DOT ? 4 : 256);
      const d = tileBase + t * 256 + l * 4;
      const sums = tileBase + t * 260 + l * 48;
      const xb = x + <usize>b * 1024;
      const m: f32 = x ? signedMax(xb, 256) : 0;
      const factor: f32 = m == 0 ? 0 : <f32>-127 / m;
      store<f32>(d, m == 0 ? 0 : <f32>1 / factor);
      for (let j: usize = 0; j < 8; j++) {
        const block = q + j * (SIGNED_DOT ? 32 * t : 32);
        if (m == 0) {
          clear32(block, 32, t);
          store<i64>(scratch, 0);
        } else round32(xb + j * 128, factor, block, 0, scratch, t);
        store<i16>(sums + j * 4, <i16>load<i32>(scratch));
        store<i16>(sums + j * 4 + 2, <i16>load<i32>(scratch, 4));
        store<i16>(sums + 32 + j * 2, <i16>(load<i32>(scratch) + load<i32>(scratch, 4)));
      }
    }
    return;
  }
  if (kind == KIND_BF16) {
    for (let c: usize = 0; c < <usize>cols; c++) store<u32>(tileBase + c * 4, roundToBfloat(load<u32>(x + c * 4)));
    return;
  }
  const is4 = kind == KIND_Q4;
  const isSplit = kind >= KIND_SPLIT;
  const qBytes: usize = is4 || SIGNED_DOT ? 32 : 64;
  const stride = t * blockStride(kind);
  let factor: f32 = 0;
  let d: f32 = 0;
  for (let b = 0, n = cols / 32; b < n; b++, tileBase += stride) {
    const q = tileBase + l * (SIGNED_DOT ? 4 : qBytes);
    const f = tileBase + t * qBytes + l * 4;
    const xb = x + <usize>b * 128;
    if (!x) {
      clear32(q, qBytes, t);
      store<i64>(scratch, 0);
      d = 0;
    } else {
      if (kind == KIND_I16_K || kind == KIND_SPLIT_K) {
        if ((b & 7) == 0) {
          const m = signedMax(xb, 256);
          factor = m == 0 ? 0 : <f32>-127 / m;
          d = m == 0 ? 0 : <f32>1 / factor;
        }
      } else {
        factor = factorOf32(xb, scratch + 8);
        d = load<f32>(scratch, 8);
      }
      if (is4 || SIGNED_DOT) round32(xb, factor, q, 0, scratch, t);
      else if (isSplit) {
        round32(xb, factor, q, 0, scratch, t);
        splitNibbles(q);
      } else round32(xb, factor, 0, q, scratch, t);
    }
    store<f32>(f, d);
    if (isSplit || (is4 && SIGNED_DOT)) continue;
    const lo = load<i32>(scratch);
    const hi = load<i32>(scratch, 4);
    if (is4) store<i32>(f + t * 4, (lo + hi) * 8);
    else {
      store<f32>(f + t * 4, d * <f32>lo);
      store<f32>(f + t * 8, d * <f32>hi);
    }
  }
}

/** Writes 32 columns of zeros, `bytes` long. */
function clear32(q: usize, bytes: usize, tile: usize): void {
  if (!SIGNED_DOT) memory.fill(q, 0, bytes);
  else for (let half: usize = 0; half < 2; half++) storeBytes(q, half, i32x4.splat(0), tile);
}

/** f32 bits rounded to their upper half, nearest even; NaN stays NaN. */
// @ts-ignore: decorator
@inline
function roundToBfloat(bits: u32): u32 {
  if ((bits & 0x7fffffff) > 0x7f800000) return bits | 0x400000;
  return (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
}

/** i8[32] at `q` becomes high and low nibbles of q + 128, 32 bytes each. */
function splitNibbles(q: usize): void {
  for (let half: usize = 0; half < 32; half += 16) {
    const v = v128.xor(v128.load(q + half), i8x16.splat(-128));
    v128.store(q + half, v128.and(i16x8.shr_u(v, 4), i8x16.splat(0x0f)));
    v128.store(q + half, v128.and(v, i8x16.splat(0x0f)), 32);
  }
}
