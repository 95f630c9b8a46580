const floatView = new Float32Array(1);
const bitsView = new Uint32Array(floatView.buffer);

/** IEEE binary16 bits to number; subnormals, infinities and NaN included. */
export function halfToFloat(half: number): number {
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  const sign = half & 0x8000 ? -1 : 1;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

let halfTable: Float32Array | null = null;

/** All 65536 halves as floats, built on first use: decoding a block's scale is then one load. Read only. */
export function halfFloats(): Float32Array {
  if (halfTable === null) {
    halfTable = new Float32Array(65536);
    const bits = new Uint32Array(halfTable.buffer);
    // Normal halves differ from floats only by the exponent bias; calling halfToFloat for each would cost 5 ms per start.
    for (let half = 0x400; half < 0x7c00; half++) bits[half] = (half << 13) + 0x38000000;
    for (let half = 0; half < 0x400; half++) {
      halfTable[half] = halfToFloat(half);
      halfTable[0x7c00 + half] = halfToFloat(0x7c00 + half);
    }
    for (let half = 0; half < 0x8000; half++) bits[0x8000 + half] = bits[half]! | 0x80000000;
  }
  return halfTable;
}

/** Number to binary16 bits: rounded to float first, then to nearest even like hardware. */
export function floatToHalf(value: number): number {
  floatView[0] = value;
  const bits = bitsView[0]!;
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00; // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00; // rounds to 65536 or more: infinity
  if (magnitude < 0x38800000) {
    // Below 2^-14, a subnormal half counts units of 2^-24; adding 2^-1 makes the FPU round to that unit.
    floatView[0] = magnitude === 0 ? 0 : Math.abs(floatView[0]!) + 0.5;
    return sign | (magnitude === 0 ? 0 : bitsView[0]! - 0x3f000000);
  }
  const rounded = magnitude + 0xfff + ((magnitude >>> 13) & 1);
  return sign | ((rounded - 0x38000000) >>> 13);
}

export function bfloatToFloat(bits: number): number {
  bitsView[0] = bits << 16;
  return floatView[0]!;
}

/** Number to bfloat16 bits, rounding to nearest even. */
export function floatToBfloat(value: number): number {
  floatView[0] = value;
  const bits = bitsView[0]!;
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >>> 16) | 0x40; // keep NaN a NaN
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}
