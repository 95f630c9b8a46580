/** The values of a 4-bit float (one sign, two exponent, one mantissa bit), doubled to be integers. */
export const FP4_VALUES = Int8Array.from([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12]);

const BORDERS = [0.5, 1.5, 2.5, 3.5, 5, 7, 10];

/** The code whose doubled value is nearest to `value`. */
export function nearestFp4(value: number): number {
  const magnitude = Math.abs(value);
  let code = 0;
  while (code < 7 && magnitude > BORDERS[code]!) code++;
  return value < 0 ? code | 8 : code;
}

/** Squared error of `count` values stored as codes times `scale`. */
export function fp4Error(values: Float32Array, from: number, count: number, scale: number): number {
  let error = 0;
  for (let i = from; i < from + count; i++) {
    error += (values[i]! - scale * FP4_VALUES[nearestFp4(values[i]! / scale)]!) ** 2;
  }
  return error;
}
