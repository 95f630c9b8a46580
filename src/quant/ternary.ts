import { halfFloats } from '../core/half.ts';
import { signedExtreme } from './extremes.ts';
import { inverseOrZero, nearestLevel, writeHalf } from './half-bytes.ts';

/** Levels 0, 1 and 2 for -1, 0 and 1, by `fitTernary`. */
export const ternaryLevels = new Uint8Array(256);

/** Rounds to -d, 0 and d with d the largest magnitude, which is exact for weights trained in three values. */
export function fitTernary(values: Float32Array, from: number, count: number, out: Uint8Array, dAt: number): void {
  const d = Math.abs(signedExtreme(values, from, count));
  writeHalf(out, dAt, d, halfFloats());
  const inverse = inverseOrZero(d);
  for (let i = 0; i < count; i++) ternaryLevels[i] = nearestLevel(values[from + i]! * inverse, -1, 1) + 1;
}
