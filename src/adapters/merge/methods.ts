import type { Random } from '../../core/random.ts';
import { createMatrix, dot, type Matrix, transpose } from './thin-svd.ts';
import type { Product } from './refactor.ts';

/** One matrix in the adapters that change it: their products and weights. */
export interface Share {
  readonly product: Product;
  readonly weight: number;
}

export interface MethodOptions {
  /** For TIES and DARE: the share of values of each ΔW that is kept. */
  readonly density: number;
  readonly random: Random;
}

/** Combines several ΔW: linear methods combine the products, others need the whole matrices. */
export type MergeMethod =
  | { readonly isLinear: true; weights(shares: readonly Share[]): readonly number[] }
  | {
      readonly isLinear: false;
      combine(matrices: readonly Matrix[], weights: readonly number[], options: MethodOptions): Matrix;
    };

export const MERGE_METHODS = {
  /** Σ wᵢ·ΔWᵢ with weights that add up to 1. */
  linear: { isLinear: true, weights: (shares) => normalized(shares.map(({ weight }) => weight)) },
  /** Σ wᵢ·ΔWᵢ with unchanged weights: adds what each has learned; a negative weight subtracts it. */
  'task-arithmetic': { isLinear: true, weights: (shares) => shares.map(({ weight }) => weight) },
  /** From one to the next along the arc between their directions; lengths change linearly. */
  slerp: { isLinear: true, weights: slerpWeights },
  /** Trim, elect a sign, merge values that agree (Yadav et al. 2023). */
  ties: { isLinear: false, combine: combineTies },
  /** Drop at random and rescale the remainder (Yu et al. 2023), then task arithmetic. */
  dare: { isLinear: false, combine: combineDare },
} as const satisfies Record<string, MergeMethod>;

export type MergeMethodName = keyof typeof MERGE_METHODS;

function normalized(weights: readonly number[]): readonly number[] {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => (sum === 0 ? 0 : weight / sum));
}

/** <ΔW₁, ΔW₂> of two products, from the small matrices b₁ᵀb₂ and a₁a₂ᵀ. */
function innerProduct(one: Product, other: Product): number {
  const [b1, b2] = [transpose(one.b), transpose(other.b)];
  let sum = 0;
  for (let i = 0; i < one.a.numRows; i++) {
    for (let j = 0; j < other.a.numRows; j++)
      sum += dot(rowOf(b1, i), rowOf(b2, j)) * dot(rowOf(one.a, i), rowOf(other.a, j));
  }
  return sum;
}

const rowOf = ({ values, numCols }: Matrix, row: number): Float64Array =>
  values.subarray(row * numCols, (row + 1) * numCols);

/** Below this angle the arc is a line to within rounding, and its formula would divide by zero. */
const SMALL_ANGLE = 1e-6;

/**
 * Two at a time, the next at its share of the weights so far. The result is again a sum of the products, so only
 * weights and all inner products are computed.
 */
function slerpWeights(shares: readonly Share[]): readonly number[] {
  const gram = shares.map((one) => shares.map((other) => innerProduct(one.product, other.product)));
  const inner = (x: readonly number[], y: readonly number[]): number =>
    x.reduce((sum, xi, i) => sum + y.reduce((row, yj, j) => row + xi * yj * gram[i]![j]!, 0), 0);
  let merged: readonly number[] = shares.map((_, i) => (i === 0 ? 1 : 0));
  let total = shares[0]!.weight;
  for (let i = 1; i < shares.length; i++) {
    const next = shares.map((_, j) => (j === i ? 1 : 0));
    total += shares[i]!.weight;
    const t = total === 0 ? 0 : shares[i]!.weight / total;
    const [length, nextLength] = [Math.sqrt(inner(merged, merged)), Math.sqrt(inner(next, next))];
    const cosine = length * nextLength === 0 ? 1 : inner(merged, next) / (length * nextLength);
    const angle = Math.acos(Math.min(1, Math.max(-1, cosine)));
    const isLine = angle < SMALL_ANGLE || Math.PI - angle < SMALL_ANGLE;
    const targetLength = (1 - t) * length + t * nextLength;
    const along = (part: number, partLength: number, whole: number): number =>
      isLine ? whole : (Math.sin(part * angle) / Math.sin(angle)) * (targetLength / partLength);
    const [p, q] = [along(1 - t, length, 1 - t), along(t, nextLength, t)];
    merged = merged.map((value, j) => p * value + q * next[j]!);
  }
  return merged;
}

function combineTies(matrices: readonly Matrix[], weights: readonly number[], { density }: MethodOptions): Matrix {
  const { numRows, numCols } = matrices[0]!;
  const trimmed = matrices.map((matrix) => trim(matrix, density));
  const out = createMatrix(numRows, numCols);
  for (let at = 0; at < out.values.length; at++) {
    const elected = Math.sign(trimmed.reduce((sum, { values }, i) => sum + weights[i]! * values[at]!, 0));
    let [sum, weight] = [0, 0];
    trimmed.forEach(({ values }, i) => {
      const value = weights[i]! * values[at]!;
      if (value === 0 || Math.sign(value) !== elected) return;
      sum += value;
      weight += Math.abs(weights[i]!);
    });
    out.values[at] = weight === 0 ? 0 : sum / weight;
  }
  return out;
}

/** Keeps the values of largest magnitude; of equal ones the first. */
function trim({ numRows, numCols, values }: Matrix, density: number): Matrix {
  const count = Math.ceil(density * values.length);
  if (count >= values.length) return { numRows, numCols, values };
  const sizes = values.map(Math.abs).sort();
  const threshold = sizes[values.length - count]!;
  let numEqual = count - sizes.reduce((above, size) => above + (size > threshold ? 1 : 0), 0);
  return createMatrix(
    numRows,
    numCols,
    values.map((value) => {
      const size = Math.abs(value);
      return size > threshold || (size === threshold && numEqual-- > 0) ? value : 0;
    }),
  );
}

function combineDare(
  matrices: readonly Matrix[],
  weights: readonly number[],
  { density, random }: MethodOptions,
): Matrix {
  const { numRows, numCols } = matrices[0]!;
  const out = createMatrix(numRows, numCols);
  matrices.forEach(({ values }, i) => {
    const factor = weights[i]! / density;
    for (let at = 0; at < values.length; at++) {
      // Draws for every value, even zeros, so that the dropped ones depend only on the seed.
      if (random.next() < density) out.values[at]! += factor * values[at]!;
    }
  });
  return out;
}
