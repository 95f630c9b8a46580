/** The value with the largest magnitude, sign kept; the first of equals. */
export function signedExtreme(values: Float32Array, from: number, count: number): number {
  let extreme = 0;
  for (let i = from; i < from + count; i++) {
    if (Math.abs(values[i]!) > Math.abs(extreme)) extreme = values[i]!;
  }
  return extreme;
}

export function smallest(values: Float32Array, from: number, count: number): number {
  let min = Infinity;
  for (let i = from; i < from + count; i++) if (values[i]! < min) min = values[i]!;
  return min;
}

export function largest(values: Float32Array, from: number, count: number): number {
  let max = -Infinity;
  for (let i = from; i < from + count; i++) if (values[i]! > max) max = values[i]!;
  return max;
}
