/**
 * Weights in blocks of 32 columns: the quants of all blocks, row by row, then what decodes them. `quants` gives 32 bytes
 * of a block, `info` four numbers. Products of integers are added to `begin`, for a layout with halves to its x and y,
 * else all to x; `accumulate` adds the block to a sum. Sums of integers are exact, so kernels may compute them in any
 * order; `accumulate` rounds, and every kernel calls it in the same order.
 */
export interface IntegerLayout {
  readonly kind: 'integer';
  readonly name: string;
  /** vec4<u32> of quants per block. */
  readonly quantVectors: number;
  /** Whether the two halves of a block have different scales. */
  readonly hasHalves: boolean;
  /** Numbers of `info` that `accumulate` reads, and whether it reads the sums of an input's halves. */
  readonly infoNumbers: 1 | 3 | 4;
  readonly readsSums: boolean;
  readonly code: string;
}

/** Weights as numbers: the 32 values of a block are 8 vec4<f32>. */
export interface FloatLayout {
  readonly kind: 'float';
  readonly name: string;
  readonly quantVectors: number;
  readonly code: string;
}

export type WeightLayout = IntegerLayout | FloatLayout;

const INFO_WORD = `
fn infoWord(at: u32, index: u32) -> u32 { return weights[at + (index >> 2u)][index & 3u]; }
fn infoHalf(at: u32, index: u32) -> f32 { return unpack2x16float(infoWord(at, index >> 1u))[index & 1u]; }`;

/**
 * Sums below 2^22 become floats without a conversion, which takes four times as long as an addition: they are added to the
 * bits of 1.5 * 2^23.
 */
const AS_FLOAT = `
const ZERO_BITS = 0x4b400000;
fn asFloat(sum: i32) -> f32 { return bitcast<f32>(sum) - 12582912.0; }`;

const NIBBLES = `
  let v = weights[at];
  let low = v & vec4<u32>(0x0f0f0f0fu);
  let high = (v >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);`;

/** Q4_0: a nibble vector and a half per block. */
export const Q4_0: IntegerLayout = {
  kind: 'integer',
  name: 'q4_0',
  quantVectors: 1,
  hasHalves: false,
  infoNumbers: 1,
  readsSums: false,
  code: `${INFO_WORD}${AS_FLOAT}
fn quants(at: u32) -> array<vec4<u32>, 2> {${NIBBLES}
  return array<vec4<u32>, 2>(low, high);
}
fn info(at: u32, index: u32) -> vec4<f32> { return vec4<f32>(infoHalf(at, index), 0.0, 0.0, 0.0); }
fn begin(x: vec4<u32>) -> vec2<i32> { return vec2<i32>(ZERO_BITS - 8 * (bitcast<i32>(x.y) + bitcast<i32>(x.z)), 0); }
fn accumulate(sum: f32, dot: vec2<i32>, w: vec4<f32>, x: vec4<u32>) -> f32 {
  return fma(asFloat(dot.x), w.x * bitcast<f32>(x.x), sum);
}
fn decode(q: i32, isHigh: u32, w: vec4<f32>) -> f32 { return f32(q - 8) * w.x; }`,
};

/** Q8_0: two vectors of signed bytes and a half per block. */
export const Q8_0: IntegerLayout = {
  kind: 'integer',
  name: 'q8_0',
  quantVectors: 2,
  hasHalves: false,
  infoNumbers: 1,
  readsSums: false,
  code: `${INFO_WORD}${AS_FLOAT}
fn quants(at: u32) -> array<vec4<u32>, 2> { return array<vec4<u32>, 2>(weights[at], weights[at + 1u]); }
fn info(at: u32, index: u32) -> vec4<f32> { return vec4<f32>(infoHalf(at, index), 0.0, 0.0, 0.0); }
fn begin(x: vec4<u32>) -> vec2<i32> { return vec2<i32>(ZERO_BITS, 0); }
fn accumulate(sum: f32, dot: vec2<i32>, w: vec4<f32>, x: vec4<u32>) -> f32 {
  return fma(asFloat(dot.x), w.x * bitcast<f32>(x.x), sum);
}
fn decode(q: i32, isHigh: u32, w: vec4<f32>) -> f32 { return f32(q) * w.x; }`,
};

/** Q4_K: a nibble vector per block; d and dmin of eight blocks are in the word at their first, scale and min in each. */
export const Q4_K: IntegerLayout = {
  kind: 'integer',
  name: 'q4_k',
  quantVectors: 1,
  hasHalves: false,
  infoNumbers: 4,
  readsSums: true,
  code: `${INFO_WORD}${AS_FLOAT}
fn quants(at: u32) -> array<vec4<u32>, 2> {${NIBBLES}
  return array<vec4<u32>, 2>(low, high);
}
fn info(at: u32, index: u32) -> vec4<f32> {
  let super_ = index >> 3u;
  let d = unpack2x16float(infoWord(at, super_ * 5u));
  let pair = infoWord(at, super_ * 5u + 1u + ((index & 7u) >> 1u)) >> ((index & 1u) * 16u);
  return vec4<f32>(d.x, d.y, f32(pair & 255u), f32((pair >> 8u) & 255u));
}
fn begin(x: vec4<u32>) -> vec2<i32> { return vec2<i32>(ZERO_BITS, 0); }
fn accumulate(sum: f32, dot: vec2<i32>, w: vec4<f32>, x: vec4<u32>) -> f32 {
  let least = w.y * (w.w * f32(bitcast<i32>(x.y) + bitcast<i32>(x.z)));
  return fma(fma(w.x, w.z * asFloat(dot.x), -least), bitcast<f32>(x.x), sum);
}
fn decode(q: i32, isHigh: u32, w: vec4<f32>) -> f32 { return fma(w.x * w.z, f32(q), -(w.y * w.w)); }`,
};

/** Q6_K: nibbles, then two upper bits of each value, as three words of two blocks… stored as one and a half vectors. */
export const Q6_K: IntegerLayout = {
  kind: 'integer',
  name: 'q6_k',
  quantVectors: 1,
  hasHalves: true,
  infoNumbers: 3,
  readsSums: false,
  // Per block: words 0 and 1 upper bits, word 2 the two scales and d.
  code: `${INFO_WORD}
fn quants6(at: u32, infoAt: u32, index: u32) -> array<vec4<u32>, 2> {${NIBBLES}
  let shifts = vec4<u32>(0u, 2u, 4u, 6u);
  let upper0 = (vec4<u32>(infoWord(infoAt, index * 3u)) >> shifts) & vec4<u32>(0x03030303u);
  let upper1 = (vec4<u32>(infoWord(infoAt, index * 3u + 1u)) >> shifts) & vec4<u32>(0x03030303u);
  return array<vec4<u32>, 2>(low | (upper0 << vec4<u32>(4u)), high | (upper1 << vec4<u32>(4u)));
}
fn info(at: u32, index: u32) -> vec4<f32> {
  let packed = infoWord(at, index * 3u + 2u);
  let scales = vec2<i32>(i32(packed << 24u) >> 24u, i32(packed << 16u) >> 24u);
  return vec4<f32>(unpack2x16float(packed).y, f32(scales.x), f32(scales.y), 0.0);
}
fn begin(x: vec4<u32>) -> vec2<i32> { return -32 * bitcast<vec2<i32>>(x.yz); }
fn accumulate(sum: f32, dot: vec2<i32>, w: vec4<f32>, x: vec4<u32>) -> f32 {
  return fma(f32(i32(w.y) * dot.x + i32(w.z) * dot.y), w.x * bitcast<f32>(x.x), sum);
}
fn decode(q: i32, isHigh: u32, w: vec4<f32>) -> f32 { return w.x * (select(w.y, w.z, isHigh == 1u) * f32(q - 32)); }`,
};

/** Any other type as signed bytes with a float scale and min for each half of a block: value = scale * q + min. */
export const LEVELS: IntegerLayout = {
  kind: 'integer',
  name: 'levels',
  quantVectors: 2,
  hasHalves: true,
  infoNumbers: 4,
  readsSums: true,
  code: `${AS_FLOAT}
fn quants(at: u32) -> array<vec4<u32>, 2> { return array<vec4<u32>, 2>(weights[at], weights[at + 1u]); }
fn info(at: u32, index: u32) -> vec4<f32> { return bitcast<vec4<f32>>(weights[at + index]); }
fn begin(x: vec4<u32>) -> vec2<i32> { return vec2<i32>(ZERO_BITS, ZERO_BITS); }
fn accumulate(sum: f32, dot: vec2<i32>, w: vec4<f32>, x: vec4<u32>) -> f32 {
  let scaled = fma(asFloat(dot.x), w.x, asFloat(dot.y) * w.y);
  let shifted = fma(f32(bitcast<i32>(x.y)), w.z, f32(bitcast<i32>(x.z)) * w.w);
  return fma(scaled + shifted, bitcast<f32>(x.x), sum);
}
fn decode(q: i32, isHigh: u32, w: vec4<f32>) -> f32 {
  return fma(f32(q), select(w.x, w.y, isHigh == 1u), select(w.z, w.w, isHigh == 1u));
}`,
};

export const F32: FloatLayout = {
  kind: 'float',
  name: 'f32',
  quantVectors: 8,
  code: `
fn four(at: u32, i: u32) -> vec4<f32> { return bitcast<vec4<f32>>(weights[at + i]); }`,
};

export const F16: FloatLayout = {
  kind: 'float',
  name: 'f16',
  quantVectors: 4,
  code: `
fn four(at: u32, i: u32) -> vec4<f32> {
  let v = weights[at + (i >> 1u)];
  let words = select(v.xy, v.zw, (i & 1u) == 1u);
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}`,
};

export const BF16: FloatLayout = {
  kind: 'float',
  name: 'bf16',
  quantVectors: 4,
  code: `
fn four(at: u32, i: u32) -> vec4<f32> {
  let v = weights[at + (i >> 1u)];
  let words = select(v.xy, v.zw, (i & 1u) == 1u);
  return bitcast<vec4<f32>>(vec4<u32>(words.x << 16u, words.x & 0xffff0000u, words.y << 16u, words.y & 0xffff0000u));
}`,
};

/** Reads the quants of a block, whatever its layout needs for that. */
export const quantsOf = (layout: IntegerLayout, at: string, infoAt: string, index: string): string =>
  layout === Q6_K ? `quants6(${at}, ${infoAt}, ${index})` : `quants(${at})`;
