import type { RgbImage } from './rgb-image.ts';

/** The source pixels of one target pixel and their weights, which add up to 1. */
interface Taps {
  readonly first: number;
  readonly weights: Float64Array;
}

/** Half the width of the filter, in target pixels. */
const LOBES = 3;

function lanczos(x: number): number {
  if (x === 0) return 1;
  if (Math.abs(x) >= LOBES) return 0;
  const angle = Math.PI * x;
  return (LOBES * Math.sin(angle) * Math.sin(angle / LOBES)) / angle ** 2;
}

function tapsOf(from: number, to: number): Taps[] {
  const scale = from / to;
  // Wider when shrinking: a pixel covers several, and skipping some would alias.
  const width = Math.max(scale, 1);
  return Array.from({ length: to }, (_, index) => {
    const center = (index + 0.5) * scale;
    const first = Math.max(0, Math.trunc(center - LOBES * width + 0.5));
    const end = Math.min(from, Math.trunc(center + LOBES * width + 0.5));
    const weights = Float64Array.from({ length: end - first }, (_, i) => lanczos((first + i - center + 0.5) / width));
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return { first, weights: weights.map((weight) => weight / sum) };
  });
}

/**
 * Stretches an image to a square with the Lanczos filter, first in width, then in height, rounded to 8 bits after each: the
 * resampling of the models' own processor. The aspect ratio is not kept.
 */
export function resizeToSquare({ width, height, data }: RgbImage, size: number): Uint8Array {
  const wide = new Uint8ClampedArray(size * height * 3);
  for (const [x, { first, weights }] of tapsOf(width, size).entries()) {
    for (let y = 0; y < height; y++) {
      sum(data, (y * width + first) * 3, 3, weights, wide, (y * size + x) * 3);
    }
  }
  const square = new Uint8ClampedArray(size * size * 3);
  for (const [y, { first, weights }] of tapsOf(height, size).entries()) {
    for (let x = 0; x < size; x++) {
      sum(wide, (first * size + x) * 3, size * 3, weights, square, (y * size + x) * 3);
    }
  }
  return new Uint8Array(square.buffer);
}

/** Clamping arrays also round to the nearest. */
function sum(
  source: Uint8Array | Uint8ClampedArray,
  start: number,
  step: number,
  weights: Float64Array,
  out: Uint8ClampedArray,
  at: number,
): void {
  let [red, green, blue] = [0, 0, 0];
  for (let i = 0, from = start; i < weights.length; i++, from += step) {
    const weight = weights[i]!;
    red += weight * source[from]!;
    green += weight * source[from + 1]!;
    blue += weight * source[from + 2]!;
  }
  out[at] = red;
  out[at + 1] = green;
  out[at + 2] = blue;
}
