import { largest, signedExtreme, smallest } from './extremes.ts';
import { fitScale, fitScaleAndMin } from './fit-scale.ts';
import type { ErrorWeights } from './format.ts';

const { fround } = Math;
const BLOCK = 32;
const pair = { scale: 0, min: 0 };

/** The scale of a block with levels from -halfLevels to halfLevels - 1: by the extreme value as in ggml, with weights by least squares. */
export function legacyScale(values: Float32Array, from: number, halfLevels: number, weights: ErrorWeights): number {
  if (weights === null) return fround(signedExtreme(values, from, BLOCK) / -halfLevels);
  return fround(fitScale(values, from, BLOCK, -halfLevels, halfLevels - 1, weights));
}

/** The scale and the smallest value of a block with levels from 0 to `high`. */
export function legacyRange(
  values: Float32Array,
  from: number,
  high: number,
  weights: ErrorWeights,
): { readonly d: number; readonly min: number } {
  if (weights === null) {
    const min = smallest(values, from, BLOCK);
    return { d: fround(fround(largest(values, from, BLOCK) - min) / high), min };
  }
  fitScaleAndMin(values, from, BLOCK, high, pair, weights);
  return { d: fround(pair.scale), min: fround(-pair.min) };
}
