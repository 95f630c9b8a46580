import { floatToHalf } from '../core/half.ts';

/** Writes `value` as a little-endian half and returns the rounded value, so that fits account for the rounding. */
export function writeHalf(out: Uint8Array, at: number, value: number, halves: Float32Array): number {
  const half = floatToHalf(value);
  out[at] = half;
  out[at + 1] = half >> 8;
  return halves[half]!;
}

/** 1 / value, or 0 for 0 (a block of zeros). */
export function inverseOrZero(value: number): number {
  return value === 0 ? 0 : 1 / value;
}

/** The nearest integer in [low, high]; NaN becomes low. */
export function nearestLevel(value: number, low: number, high: number): number {
  const level = Math.round(value);
  return level >= low ? (level <= high ? level : high) : low;
}
