import { inverseOrZero, nearestLevel, writeHalf } from './half-bytes.ts';
import { IQ2_XXS_GRID } from './iq2-xxs-grid.ts';

const NUM_POINTS = 256;
/** The extreme value is mapped to magnitudes 20, 25, … 60: the largest magnitude is 43, and clipping it may pay. */
const AIMS = [20, 25, 30, 35, 40, 43, 46, 50, 55, 60];

const pointSquares = new Float64Array(NUM_POINTS);
for (let i = 0; i < IQ2_XXS_GRID.length; i++) pointSquares[i >> 3]! += IQ2_XXS_GRID[i]! ** 2;

const magnitudes = new Float64Array(256);
const signs = new Uint8Array(32);
const fitted = new Float64Array(8);
/** dots[o * NUM_POINTS + p]: octet o of the block with grid point p. */
const dots = new Float64Array(32 * NUM_POINTS);

/** Finds the scale, signs and nearest grid points of 256 values and writes their block. */
export function fitIq2XxsBlock(
  values: Float32Array,
  from: number,
  out: Uint8Array,
  at: number,
  halves: Float32Array,
): void {
  for (let octet = 0; octet < 32; octet++) takeSigns(values, from, octet);
  for (let octet = 0; octet < 32; octet++) fillDots(octet);
  let largest = 0;
  for (let sub = 0; sub < 8; sub++) {
    fitted[sub] = fitSubBlock(sub);
    largest = Math.max(largest, fitted[sub]!);
  }
  // The largest factor a stored scale gives is (15 + 0.5) / 4.
  const d = writeHalf(out, at, largest / 3.875, halves);
  for (let sub = 0; sub < 8; sub++) {
    const stored = nearestLevel(4 * fitted[sub]! * inverseOrZero(d) - 0.5, 0, 15);
    const scale = (d * (stored + 0.5)) / 4;
    let signsAndScale = stored << 28;
    for (let i = 0; i < 4; i++) {
      const octet = sub * 4 + i;
      out[at + 2 + sub * 8 + i] = nearestPoint(octet, scale);
      signsAndScale |= (signs[octet]! & 127) << (i * 7);
    }
    for (let i = 0; i < 4; i++) out[at + 6 + sub * 8 + i] = signsAndScale >>> (i * 8);
  }
}

/** Splits an octet into signs and magnitudes; with an odd number of minuses the smallest value loses its sign. */
function takeSigns(values: Float32Array, from: number, octet: number): void {
  let bits = 0;
  let isOdd = false;
  let smallest = octet * 8;
  for (let i = octet * 8; i < octet * 8 + 8; i++) {
    const value = values[from + i]!;
    magnitudes[i] = Math.abs(value);
    if (magnitudes[i]! < magnitudes[smallest]!) smallest = i;
    if (value < 0) {
      bits |= 1 << (i & 7);
      isOdd = !isOdd;
    }
  }
  if (isOdd) {
    bits ^= 1 << (smallest & 7);
    magnitudes[smallest]! *= -1;
  }
  signs[octet] = bits;
}

function fillDots(octet: number): void {
  for (let point = 0; point < NUM_POINTS; point++) {
    let dot = 0;
    for (let k = 0; k < 8; k++) dot += magnitudes[octet * 8 + k]! * IQ2_XXS_GRID[point * 8 + k]!;
    dots[octet * NUM_POINTS + point] = dot;
  }
}

/** |x - s g|² = |x|² - (2 s x·g - s² g·g): the nearest point has the largest term in brackets. */
function nearestPoint(octet: number, scale: number): number {
  let best = 0;
  let bestGain = -Infinity;
  for (let point = 0; point < NUM_POINTS; point++) {
    const gain = 2 * dots[octet * NUM_POINTS + point]! - scale * pointSquares[point]!;
    if (gain > bestGain) {
      bestGain = gain;
      best = point;
    }
  }
  return best;
}

function fitSubBlock(sub: number): number {
  let extreme = 0;
  for (let i = sub * 32; i < sub * 32 + 32; i++) extreme = Math.max(extreme, magnitudes[i]!);
  let scale = 0;
  let bestGain = 0;
  for (const aim of extreme > 0 ? AIMS : []) {
    let dot = 0;
    let squares = 0;
    for (let octet = sub * 4; octet < sub * 4 + 4; octet++) {
      const point = nearestPoint(octet, extreme / aim);
      dot += dots[octet * NUM_POINTS + point]!;
      squares += pointSquares[point]!;
    }
    if (dot > 0 && (dot * dot) / squares > bestGain) {
      bestGain = (dot * dot) / squares;
      scale = dot / squares;
    }
  }
  return scale;
}
