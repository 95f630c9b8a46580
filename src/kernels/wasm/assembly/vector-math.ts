// @ts-ignore: decorator
@inline
export function fma(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(a, b, c);
  return f32x4.add(f32x4.mul(a, b), c);
}

// @ts-ignore: decorator
@inline
export function horizontalSum(v: v128): f32 {
  return f32x4.extract_lane(v, 0) + f32x4.extract_lane(v, 1) + (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3));
}

// @ts-ignore: decorator
@inline
export function horizontalMax(v: v128): f32 {
  return max(max(f32x4.extract_lane(v, 0), f32x4.extract_lane(v, 1)), max(f32x4.extract_lane(v, 2), f32x4.extract_lane(v, 3)));
}

/**
 * e^x to about 1e-7 relative: range reduction by ln 2 in two parts, then the degree-5 minimax polynomial of Arm's
 * optimized routines, as in llama.cpp: with fused multiply-adds the bits are equal. Only NaN gives NaN.
 */
export function expVector(x: v128): v128 {
  const clamped = f32x4.min(f32x4.max(x, f32x4.splat(-87.3)), f32x4.splat(88.3));
  const shift = f32x4.splat(12582912); // 1.5 * 2^23: the last bit of the sum is 1, so that it rounds to an integer
  const n = f32x4.sub(fma(clamped, f32x4.splat(1.4426950216293335), shift), shift);
  let r = fma(n, f32x4.splat(-0.693145751953125), clamped);
  r = fma(n, f32x4.splat(-1.428606765330187e-06), r);
  const square = f32x4.mul(r, r);
  const high = fma(f32x4.splat(0.008247390389442444), r, f32x4.splat(0.04189976677298546));
  const middle = fma(f32x4.splat(0.16668395698070526), r, f32x4.splat(0.4999912679195404));
  const low = fma(f32x4.splat(0.9999994039535522), r, f32x4.splat(1));
  const p = fma(fma(high, square, middle), square, low);
  const power = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23);
  return f32x4.mul(p, power);
}

/** tanh through e^2|x|: cancellation does not matter at the magnitudes of soft-capping and GELU. */
export function tanhVector(x: v128): v128 {
  const e = expVector(f32x4.mul(f32x4.abs(x), f32x4.splat(2)));
  const t = f32x4.sub(f32x4.splat(1), f32x4.div(f32x4.splat(2), f32x4.add(e, f32x4.splat(1))));
  return v128.or(t, v128.and(x, i32x4.splat(0x80000000)));
}

/** Bits of finite halves, shifted to their places in an f32, to values: 2^112 corrects the exponent, subnormals included. */
// @ts-ignore: decorator
@inline
function moveExponent(bits: v128): v128 { return f32x4.mul(bits, i32x4.splat(0x77800000)); }

/** Four halves in the low 16 bits of each lane to f32. */
// @ts-ignore: decorator
@inline
export function halfToFloat4(bits: v128): v128 {
  const value = finiteHalfToFloat4(bits);
  // Infinity and NaN end up at 2^16 and more, beyond all halves: without this they would become finite numbers.
  return v128.or(value, v128.and(f32x4.ge(f32x4.abs(value), f32x4.splat(65536)), i32x4.splat(0x7f800000)));
}

/** The same without support for infinity and NaN: a third less work. */
// @ts-ignore: decorator
@inline
export function finiteHalfToFloat4(bits: v128): v128 {
  const sign = i32x4.shl(v128.and(bits, i32x4.splat(0x8000)), 16);
  const magnitude = i32x4.shl(v128.and(bits, i32x4.splat(0x7fff)), 13);
  return v128.or(moveExponent(magnitude), sign);
}

/** Four finite halves at `address` to f32, from one sign-extending load. */
// @ts-ignore: decorator
@inline
export function loadHalves4(address: usize): v128 {
  return moveExponent(v128.and(i32x4.shl(v128.load_ext<i16>(address), 13), i32x4.splat(0x8fffe000)));
}

/** A sixteenth of four finite halves at `address`: exact, because f32 extends below the smallest half. */
// @ts-ignore: decorator
@inline
export function loadSixteenths4(address: usize): v128 {
  return f32x4.mul(v128.and(i32x4.shl(v128.load_ext<i16>(address), 13), i32x4.splat(0x8fffe000)), i32x4.splat(0x75800000));
}

/** f32 values rounded to f16 precision, nearest even; for magnitudes below 65504. */
export function roundToHalf4(v: v128): v128 {
  const odd = v128.and(i32x4.shr_u(v, 13), i32x4.splat(1));
  const normal = v128.and(i32x4.add(i32x4.add(v, i32x4.splat(0xfff)), odd), i32x4.splat(~0x1fff));
  // Below 2^-14 halves are multiples of 2^-24, the unit in the last place of 0.75.
  const offset = f32x4.splat(0.75);
  const subnormal = f32x4.sub(f32x4.add(v, offset), offset);
  return v128.bitselect(subnormal, normal, f32x4.lt(f32x4.abs(v), f32x4.splat(6.103515625e-5)));
}

export function halfToFloat(bits: u32): f32 {
  return f32x4.extract_lane(halfToFloat4(i32x4.splat(<i32>bits)), 0);
}

/** f32 to half bits, nearest even, overflow to infinity; NaN stays NaN. */
export function floatToHalf(value: f32): u32 {
  const bits = reinterpret<u32>(value);
  const sign = (bits >> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude < 0x38800000) return sign | (reinterpret<u32>(reinterpret<f32>(magnitude) + 0.5) - 0x3f000000);
  return sign | ((magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000) >> 13);
}
