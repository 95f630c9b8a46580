import type { ErrorWeights } from './format.ts';
import { inverseOrZero, nearestLevel, writeHalf } from './half-bytes.ts';

/** How a format of 256 values stores points of a grid: value = d * unit * (2 * stored + 1) * point. */
export interface GridLayout {
  /** `dim` values per point. */
  readonly points: ArrayLike<number>;
  readonly dim: number;
  /** Values that share a stored scale. */
  readonly group: number;
  readonly maxStored: number;
  readonly unit: number;
  /** Sets of points, of equal size, of which each group uses one. */
  readonly numSets: number;
  /** The magnitudes to which the extreme value of a group is mapped: clipping it may pay. */
  readonly aims: readonly number[];
}

/** Values of a block as `fitGrid` sees them: magnitudes, or signed values for grids with signs. */
export const gridValues = new Float64Array(256);
/** Weights of their squared errors. */
const gridWeights = new Float64Array(256);
/** Sign bits of each octet, by `takeSigns`. */
export const gridSigns = new Uint8Array(32);
/** Results of `fitGrid`: the stored scale of each group and the point of each vector. */
export const storedScales = new Uint8Array(16);
export const pickedPoints = new Uint16Array(64);

const fitted = new Float64Array(16);
const fittedSets = new Uint8Array(16);
/** dots[v * numPoints + p]: vector v of the block with point p. */
let dots = new Float64Array(0);
/** The same of the squares of points: the weights of a vector's values differ. */
let squares = new Float64Array(0);

/**
 * Splits 256 values into signs and magnitudes. If only an even number of minuses can be stored, the smallest value of an
 * octet with an odd number loses its sign.
 */
export function takeSigns(values: Float32Array, from: number, isEven: boolean, weights: ErrorWeights): void {
  takeWeights(from, weights);
  for (let octet = 0; octet < 32; octet++) {
    let bits = 0;
    let isOdd = false;
    let smallest = octet * 8;
    for (let i = octet * 8; i < octet * 8 + 8; i++) {
      const value = values[from + i]!;
      gridValues[i] = Math.abs(value);
      if (cost(i) < cost(smallest)) smallest = i;
      if (value < 0) {
        bits |= 1 << (i & 7);
        isOdd = !isOdd;
      }
    }
    if (isOdd && isEven) {
      bits ^= 1 << (smallest & 7);
      gridValues[smallest]! *= -1;
    }
    gridSigns[octet] = bits;
  }
}

const cost = (i: number): number => gridWeights[i]! * gridValues[i]! ** 2;

/** Reads 256 values for a grid whose points have signs. */
export function takeValues(values: Float32Array, from: number, weights: ErrorWeights): void {
  takeWeights(from, weights);
  for (let i = 0; i < 256; i++) gridValues[i] = values[from + i]!;
}

function takeWeights(from: number, weights: ErrorWeights): void {
  for (let i = 0; i < 256; i++) gridWeights[i] = weights === null ? 1 : weights[from + i]!;
}

/** Finds scales and nearest points of `gridValues`. `writeD` stores d and returns it as stored. */
export function fitGrid(layout: GridLayout, writeD: (d: number) => number): void {
  const { dim, group, maxStored, unit, numSets } = layout;
  const numPoints = layout.points.length / dim;
  fillDots(layout, numPoints);
  const numGroups = 256 / group;
  let largest = 0;
  for (let g = 0; g < numGroups; g++) {
    fitGroup(layout, numPoints, g);
    largest = Math.max(largest, fitted[g]!);
  }
  const d = writeD(largest / (unit * (2 * maxStored + 1)));
  for (let g = 0; g < numGroups; g++) {
    const stored = nearestLevel((fitted[g]! * inverseOrZero(d * unit) - 1) / 2, 0, maxStored);
    const scale = d * unit * (2 * stored + 1);
    storedScales[g] = stored;
    const first = (fittedSets[g]! * numPoints) / numSets;
    for (let v = (g * group) / dim; v < ((g + 1) * group) / dim; v++) {
      pickedPoints[v] = nearestPoint(v, scale, numPoints, first, first + numPoints / numSets);
    }
  }
}

/** `fitGrid` with d as a half at `at`. */
export function fitGridBlock(layout: GridLayout, out: Uint8Array, at: number, halves: Float32Array): void {
  fitGrid(layout, (d) => writeHalf(out, at, d, halves));
}

function fillDots({ points, dim }: GridLayout, numPoints: number): void {
  const numVectors = 256 / dim;
  if (dots.length < numVectors * numPoints) {
    dots = new Float64Array(numVectors * numPoints);
    squares = new Float64Array(numVectors * numPoints);
  }
  for (let v = 0; v < numVectors; v++) {
    for (let p = 0; p < numPoints; p++) {
      let dot = 0;
      let square = 0;
      for (let k = 0; k < dim; k++) {
        const weighted = gridWeights[v * dim + k]! * points[p * dim + k]!;
        dot += weighted * gridValues[v * dim + k]!;
        square += weighted * points[p * dim + k]!;
      }
      dots[v * numPoints + p] = dot;
      squares[v * numPoints + p] = square;
    }
  }
}

/** |x - s g|² = |x|² - (2 s x·g - s² g·g): the nearest point has the largest term in brackets. */
function nearestPoint(vector: number, scale: number, numPoints: number, first: number, end: number): number {
  let best = first;
  let bestGain = -Infinity;
  for (let point = first; point < end; point++) {
    const gain = 2 * dots[vector * numPoints + point]! - scale * squares[vector * numPoints + point]!;
    if (gain > bestGain) {
      bestGain = gain;
      best = point;
    }
  }
  return best;
}

function fitGroup({ dim, group, numSets, aims }: GridLayout, numPoints: number, g: number): void {
  let extreme = 0;
  for (let i = g * group; i < (g + 1) * group; i++) extreme = Math.max(extreme, Math.abs(gridValues[i]!));
  fitted[g] = 0;
  fittedSets[g] = 0;
  let bestGain = 0;
  for (let set = 0; set < numSets; set++) {
    const first = (set * numPoints) / numSets;
    for (const aim of extreme > 0 ? aims : []) {
      let dot = 0;
      let square = 0;
      for (let v = (g * group) / dim; v < ((g + 1) * group) / dim; v++) {
        const point = nearestPoint(v, extreme / aim, numPoints, first, first + numPoints / numSets);
        dot += dots[v * numPoints + point]!;
        square += squares[v * numPoints + point]!;
      }
      if (dot > 0 && square > 0 && (dot * dot) / square > bestGain) {
        bestGain = (dot * dot) / square;
        fitted[g] = dot / square;
        fittedSets[g] = set;
      }
    }
  }
}
