import { signedExtreme } from './extremes.ts';
import type { ErrorWeights } from './format.ts';

/** The values of a nibble of IQ4_NL and IQ4_XS: finer near zero, where most weights are. */
export const IQ4_VALUES = Float32Array.from([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]);

/** Scales tried on each side of the one that maps the extreme value to an end of the codebook. */
const STEPS = 7;
const ENDS = [IQ4_VALUES[0]!, IQ4_VALUES[15]!];

/** Index of the codebook value nearest to `value`. */
export function nearestIq4(value: number): number {
  let index = 0;
  for (let stride = 8; stride > 0; stride >>= 1) {
    const next = index + stride;
    if (value > (IQ4_VALUES[next - 1]! + IQ4_VALUES[next]!) / 2) index = next;
  }
  return index;
}

/** The scale s, of either sign, that minimizes the squared error of s * codebook. */
export function fitIq4Scale(values: Float32Array, from: number, count: number, weights: ErrorWeights): number {
  const extreme = signedExtreme(values, from, count);
  if (extreme === 0) return 0;
  let scale = 0;
  let bestGain = -1;
  for (const end of ENDS) {
    for (let step = -STEPS; step <= STEPS; step++) {
      const inverse = (end + step) / extreme;
      let dot = 0;
      let squares = 0;
      for (let i = from; i < from + count; i++) {
        const code = IQ4_VALUES[nearestIq4(values[i]! * inverse)]!;
        const weighted = weights === null ? code : code * weights[i]!;
        dot += weighted * values[i]!;
        squares += weighted * code;
      }
      const gain = squares === 0 ? 0 : (dot * dot) / squares;
      if (gain > bestGain) {
        bestGain = gain;
        scale = squares === 0 ? 0 : dot / squares;
      }
    }
  }
  return scale;
}
