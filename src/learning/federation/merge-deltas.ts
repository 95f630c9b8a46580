import type { LowRankFactors } from '../../adapters/types.ts';
import { refactorProduct } from '../../adapters/merge/refactor.ts';
import { createMatrix, dot, thinQr, transpose } from '../../adapters/merge/thin-svd.ts';
import { numTrimmed } from './robust-mean.ts';

/** The trained changes of one node. */
export type Delta = readonly LowRankFactors[];

/** A matrix of the result. */
export type Site = Pick<LowRankFactors, 'target' | 'layer' | 'numCols' | 'numRows'>;

export interface MergedDelta {
  /** With scale 1. */
  readonly factors: LowRankFactors[];
  /** Frobenius norm of each ΔW before it was clipped, the own one first. */
  readonly norms: readonly number[];
  /** Norm that each was clipped to: the median, or twice that of this node. */
  readonly bound: number;
  /** Share of the merged ΔW, by squares, that the rank keeps. */
  readonly keptEnergy: number;
}

/** How much longer than the own ΔW another may be: a node that learned little gains from one that learned more. */
const MAX_OVER_OWN = 2;
/** Rows between two pauses. */
const PAUSE_EVERY = 256;

export interface MergePlan {
  readonly sites: readonly Site[];
  readonly rank: number;
  /** Called often; may stop the work by an error. */
  pause(): Promise<void>;
}

const isAt = (site: Site) => (one: LowRankFactors) => one.target === site.target && one.layer === site.layer;

/** ‖scale · B·A‖² without the product: the sum of (BᵀB) ∘ (AAᵀ). */
function squaredNorm({ a, b, rank, numCols, numRows, scale }: LowRankFactors): number {
  let sum = 0;
  for (let i = 0; i < rank; i++) {
    for (let j = 0; j < rank; j++) {
      let [inA, inB] = [0, 0];
      for (let col = 0; col < numCols; col++) inA += a[i * numCols + col]! * a[j * numCols + col]!;
      for (let row = 0; row < numRows; row++) inB += b[row * rank + i]! * b[row * rank + j]!;
      sum += inA * inB;
    }
  }
  return Math.max(0, sum) * scale * scale;
}

export const deltaNorm = (delta: Delta): number => Math.sqrt(delta.reduce((sum, one) => sum + squaredNorm(one), 0));

/** Of two the smaller one: a single long ΔW must not raise it. */
const lowerMedian = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)]!;

/** For each column the mean of the votes without the largest and the smallest ones; `votes`: f64[numVotes × numCols]. */
function trimmedRow(votes: readonly Float64Array[], row: Float64Array, sorted: Float64Array): void {
  const trim = numTrimmed(votes.length);
  for (let col = 0; col < row.length; col++) {
    for (let i = 0; i < votes.length; i++) {
      const value = votes[i]![col]!;
      let at = i;
      for (; at > 0 && sorted[at - 1]! > value; at--) sorted[at] = sorted[at - 1]!;
      sorted[at] = value;
    }
    let sum = 0;
    for (let i = trim; i < votes.length - trim; i++) sum += sorted[i]!;
    row[col] = sum / (votes.length - 2 * trim);
  }
}

/** `scale · B·A` of one row, times `clip`. */
function writeRow({ a, b, rank, numCols, scale }: LowRankFactors, at: number, clip: number, row: Float64Array): void {
  row.fill(0);
  for (let r = 0; r < rank; r++) {
    const factor = b[at * rank + r]! * scale * clip;
    if (factor === 0) continue;
    for (let col = 0; col < numCols; col++) row[col]! += factor * a[r * numCols + col]!;
  }
}

/**
 * The coordinate-wise trimmed mean of ΔW (of three nodes the median), each clipped to a norm, in factors of a rank. ΔW is built row by
 * row, and each row is projected onto the rows of all A, which moves it away from none of them; then the rank is cut by SVD.
 */
export async function mergeDeltas(
  own: Delta | null,
  peers: readonly Delta[],
  { sites, rank, pause }: MergePlan,
): Promise<MergedDelta> {
  const deltas = [...(own === null ? [] : [own]), ...peers];
  const norms = deltas.map(deltaNorm);
  const bound = Math.max(lowerMedian(norms), own === null ? 0 : MAX_OVER_OWN * norms[0]!);
  const clips = norms.map((norm) => (norm > bound ? bound / norm : 1));
  const factors: LowRankFactors[] = [];
  let [total, kept] = [0, 0];
  for (const site of sites) {
    const parts = deltas.map((delta) => delta.find(isAt(site)) ?? null);
    const merged = await mergeMatrix(parts, clips, site, rank, pause);
    factors.push(merged.factors);
    total += merged.total;
    kept += merged.kept;
  }
  return { factors, norms, bound, keptEnergy: total === 0 ? 1 : kept / total };
}

async function mergeMatrix(
  parts: readonly (LowRankFactors | null)[],
  clips: readonly number[],
  { target, layer, numCols, numRows }: Site,
  rank: number,
  pause: () => Promise<void>,
) {
  const basis = basisOf(parts, numCols);
  const votes = parts.map(() => new Float64Array(numCols));
  const [row, sorted] = [new Float64Array(numCols), new Float64Array(parts.length)];
  const projected = createMatrix(numRows, basis.length);
  let total = 0;
  for (let at = 0; at < numRows; at++) {
    if (at % PAUSE_EVERY === 0) await pause();
    for (const [i, part] of parts.entries()) if (part !== null) writeRow(part, at, clips[i]!, votes[i]!);
    trimmedRow(votes, row, sorted);
    total += dot(row, row);
    for (const [i, axis] of basis.entries()) projected.values[at * basis.length + i] = dot(row, axis);
  }
  const a = new Float32Array(rank * numCols);
  const b = new Float32Array(numRows * rank);
  const factors = { target, layer, numCols, numRows, rank, scale: 1, a, b };
  if (total === 0 || basis.length === 0) return { factors, total, kept: 0 };
  const rows = createMatrix(basis.length, numCols);
  for (const [i, axis] of basis.entries()) rows.values.set(axis, i * numCols);
  const cut = refactorProduct({ b: projected, a: rows }, rank);
  a.set(cut.a.values);
  for (let at = 0; at < numRows; at++) {
    for (let r = 0; r < cut.rank; r++) b[at * rank + r] = cut.b.values[at * cut.b.numCols + r]!;
  }
  const length = dot(projected.values, projected.values);
  return { factors, total, kept: length * cut.keptEnergy };
}

/** Orthonormal rows that span those of all A. */
function basisOf(parts: readonly (LowRankFactors | null)[], numCols: number): Float64Array[] {
  const rows = parts.flatMap((part) =>
    part === null ? [] : Array.from({ length: part.rank }, (_, r) => part.a.subarray(r * numCols, (r + 1) * numCols)),
  );
  if (rows.length === 0) return [];
  const stacked = createMatrix(rows.length, numCols);
  for (const [i, row] of rows.entries()) stacked.values.set(row, i * numCols);
  const { values } = transpose(thinQr(transpose(stacked)).q);
  return rows.map((_, i) => values.subarray(i * numCols, (i + 1) * numCols)).filter((axis) => dot(axis, axis) > 0);
}
