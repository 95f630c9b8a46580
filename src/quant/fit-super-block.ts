import { fitScale, fitScaleAndMin } from './fit-scale.ts';
import type { ErrorWeights } from './format.ts';
import { inverseOrZero, nearestLevel, writeHalf } from './half-bytes.ts';

const SUPER_BLOCK = 256;
const pair = { scale: 0, min: 0 };
const fittedScales = new Float64Array(16);
const fittedMins = new Float64Array(16);

/** Parameters of the affine super-block formats. */
export interface AffineLayout {
  /** Values per sub-block. */
  readonly subBlock: number;
  /** Largest level of a value. */
  readonly maxLevel: number;
  /** Largest stored sub-block scale and min. */
  readonly maxScale: number;
  /** Byte offsets of the halves d and dmin in the block. */
  readonly dOffset: number;
  readonly dminOffset: number;
}

/**
 * Fits value ≈ d * scales[s] * level - dmin * mins[s] for one super-block: writes d and dmin to `out`, and fills
 * scales, mins (one per sub-block) and levels (one per value).
 */
export function fitAffineSuperBlock(
  layout: AffineLayout,
  values: Float32Array,
  from: number,
  out: Uint8Array,
  at: number,
  halves: Float32Array,
  scales: Uint8Array,
  mins: Uint8Array,
  levels: Uint8Array,
  weights: ErrorWeights,
): void {
  const { subBlock, maxLevel, maxScale } = layout;
  const numSubBlocks = SUPER_BLOCK / subBlock;
  let largestScale = 0;
  let largestMin = 0;
  for (let s = 0; s < numSubBlocks; s++) {
    fitScaleAndMin(values, from + s * subBlock, subBlock, maxLevel, pair, weights);
    fittedScales[s] = pair.scale;
    fittedMins[s] = pair.min;
    largestScale = Math.max(largestScale, pair.scale);
    largestMin = Math.max(largestMin, pair.min);
  }
  const d = writeHalf(out, at + layout.dOffset, largestScale / maxScale, halves);
  const dmin = writeHalf(out, at + layout.dminOffset, largestMin / maxScale, halves);
  const inverseD = inverseOrZero(d);
  const inverseDmin = inverseOrZero(dmin);
  for (let s = 0; s < numSubBlocks; s++) {
    scales[s] = nearestLevel(fittedScales[s]! * inverseD, 0, maxScale);
    mins[s] = nearestLevel(fittedMins[s]! * inverseDmin, 0, maxScale);
    // Levels are chosen again: the stored scale and min differ slightly from the fitted ones.
    const inverse = inverseOrZero(d * scales[s]!);
    const min = dmin * mins[s]!;
    for (let i = s * subBlock; i < (s + 1) * subBlock; i++) {
      levels[i] = nearestLevel((values[from + i]! + min) * inverse, 0, maxLevel);
    }
  }
}

/** Parameters of the symmetric super-block formats. */
export interface SymmetricLayout {
  /** Values per sub-block. */
  readonly subBlock: number;
  /** Levels run from -halfLevels to halfLevels - 1. */
  readonly halfLevels: number;
  /** Stored sub-block scales run from -halfScales to halfScales - 1. */
  readonly halfScales: number;
  /** Byte offset of the half d in the block. */
  readonly dOffset: number;
}

/**
 * Fits value ≈ d * scales[s] * level for one super-block: writes d to `out`, and fills scales (one per sub-block) and
 * levels (one per value, already shifted by `halfLevels` to start at 0).
 */
export function fitSymmetricSuperBlock(
  layout: SymmetricLayout,
  values: Float32Array,
  from: number,
  out: Uint8Array,
  at: number,
  halves: Float32Array,
  scales: Int8Array,
  levels: Uint8Array,
  weights: ErrorWeights,
): void {
  const { subBlock, halfLevels, halfScales } = layout;
  const numSubBlocks = SUPER_BLOCK / subBlock;
  let extreme = 0;
  for (let s = 0; s < numSubBlocks; s++) {
    const scale = fitScale(values, from + s * subBlock, subBlock, -halfLevels, halfLevels - 1, weights);
    fittedScales[s] = scale;
    if (Math.abs(scale) > Math.abs(extreme)) extreme = scale;
  }
  const d = writeHalf(out, at + layout.dOffset, extreme / -halfScales, halves);
  const inverseD = inverseOrZero(d);
  for (let s = 0; s < numSubBlocks; s++) {
    scales[s] = nearestLevel(fittedScales[s]! * inverseD, -halfScales, halfScales - 1);
    const inverse = inverseOrZero(d * scales[s]!);
    for (let i = s * subBlock; i < (s + 1) * subBlock; i++) {
      levels[i] = nearestLevel(values[from + i]! * inverse, -halfLevels, halfLevels - 1) + halfLevels;
    }
  }
}
