import { signedExtreme } from './extremes.ts';
import type { ErrorWeights } from './format.ts';
import { nearestLevel } from './half-bytes.ts';

/** Scales tried on each side of the one that maps the extreme value to the last level. */
const STEPS = 9;
/** In levels: the search covers ± 0.9 of a level, beyond which another value certainly clips. */
const STEP = 0.1;

/**
 * The scale s that minimizes the squared error of s * level, with levels in [low, high] and low = -high - 1.
 * The extreme value maps to `low`, so s may be negative.
 */
export function fitScale(
  values: Float32Array,
  from: number,
  count: number,
  low: number,
  high: number,
  weights: ErrorWeights,
): number {
  const extreme = signedExtreme(values, from, count);
  if (extreme === 0) return 0;
  let scale = 0;
  let bestGain = -1;
  for (let step = -STEPS; step <= STEPS; step++) {
    const inverse = (low + step * STEP) / extreme;
    let dot = 0;
    let squares = 0;
    for (let i = from; i < from + count; i++) {
      const level = nearestLevel(values[i]! * inverse, low, high);
      const weighted = weights === null ? level : level * weights[i]!;
      dot += weighted * values[i]!;
      squares += weighted * level;
    }
    // Error = Σ x² - dot² / squares at the best scale for these levels, dot / squares.
    const gain = squares === 0 ? 0 : (dot * dot) / squares;
    if (gain > bestGain) {
      bestGain = gain;
      scale = squares === 0 ? 0 : dot / squares;
    }
  }
  return scale;
}

/** A sub-block's affine map: value ≈ scale * level - min, both factors ≥ 0 because files store them unsigned. */
export interface ScaleAndMin {
  scale: number;
  min: number;
}

/** Fits `into` to minimize the squared error of scale * level - min, with levels in [0, high]. */
export function fitScaleAndMin(
  values: Float32Array,
  from: number,
  count: number,
  high: number,
  into: ScaleAndMin,
  weights: ErrorWeights,
): void {
  let lowest = 0;
  let highest = -Infinity;
  let sumW = 0;
  let sumX = 0;
  let squaresX = 0;
  for (let i = from; i < from + count; i++) {
    const x = values[i]!;
    const weight = weights === null ? 1 : weights[i]!;
    if (x < lowest) lowest = x;
    if (x > highest) highest = x;
    sumW += weight;
    sumX += weight * x;
    squaresX += weight * x * x;
  }
  into.scale = 0;
  into.min = -lowest;
  const range = highest - lowest;
  if (!(range > 0)) return;
  let bestError = Infinity;
  for (let step = -STEPS; step <= STEPS; step++) {
    const inverse = (high + step * STEP) / range;
    let sumL = 0;
    let squaresL = 0;
    let dot = 0;
    for (let i = from; i < from + count; i++) {
      const level = nearestLevel((values[i]! - lowest) * inverse, 0, high);
      const weighted = weights === null ? level : level * weights[i]!;
      sumL += weighted;
      squaresL += weighted * level;
      dot += weighted * values[i]!;
    }
    if (squaresL === 0) continue;
    const determinant = sumW * squaresL - sumL * sumL;
    let scale = determinant > 0 ? (sumW * dot - sumL * sumX) / determinant : 0;
    let min = determinant > 0 ? (sumL * dot - squaresL * sumX) / determinant : -1;
    if (min < 0) {
      min = 0;
      scale = dot / squaresL;
    }
    if (scale < 0) continue;
    const error =
      squaresX + scale * scale * squaresL + sumW * min * min - 2 * (scale * dot - min * sumX + scale * min * sumL);
    if (error < bestError) {
      bestError = error;
      into.scale = scale;
      into.min = min;
    }
  }
}
