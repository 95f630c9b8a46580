import { foldsOf } from './folds.ts';
import type { RouteExample } from './types.ts';

/** The rated requests that a router knows, by their sentence vectors. */
export interface Familiarity {
  /** f32[numRows × width], unit vectors. */
  readonly rows: Float32Array;
  readonly width: number;
  /** A request less similar than this to its nearest row is unfamiliar. */
  readonly minSimilarity: number;
}

/** Share of familiar requests, of conversations that were held out, that may be taken for unfamiliar. */
const MAX_REJECTED = 0.05;
/** More rows take longer than the decision is worth: 0.3 ms for these. */
const MAX_ROWS = 2000;
const NUM_FOLDS = 3;
/** Enough for a quantile of 5 %. */
const MAX_CALIBRATED = 600;

/** The cosine of the nearest row; −1 without rows. */
export function nearestSimilarity(
  { rows, width }: Pick<Familiarity, 'rows' | 'width'>,
  vector: Float32Array,
  isUsed: (row: number) => boolean = () => true,
): number {
  let nearest = -1;
  for (let row = 0; row * width < rows.length; row++) {
    if (!isUsed(row)) continue;
    let sum = 0;
    for (let i = 0, at = row * width; i < width; i++, at++) sum += rows[at]! * vector[i]!;
    nearest = Math.max(nearest, sum);
  }
  return nearest;
}

/** Calibrates the threshold on groups that were held out; null without vectors or with one group. */
export function fitFamiliarity(examples: readonly RouteExample[], seed: number): Familiarity | null {
  const withVector = examples.filter(({ input }) => input.vector !== undefined);
  const step = Math.max(1, withVector.length / MAX_ROWS);
  const kept = Array.from(
    { length: Math.min(withVector.length, MAX_ROWS) },
    (_, i) => withVector[Math.floor(i * step)]!,
  );
  if (new Set(kept.map(({ group }) => group)).size < 2) return null;
  const width = kept[0]!.input.vector!.length;
  const rows = new Float32Array(kept.length * width);
  kept.forEach(({ input }, i) => rows.set(input.vector!, i * width));
  const folds = foldsOf(kept, NUM_FOLDS, seed);
  const every = Math.max(1, kept.length / MAX_CALIBRATED);
  const similarities = Array.from({ length: Math.min(kept.length, MAX_CALIBRATED) }, (_, i) => {
    const at = Math.floor(i * every);
    return nearestSimilarity({ rows, width }, kept[at]!.input.vector!, (row) => folds[row] !== folds[at]);
  }).sort((a, b) => a - b);
  return { rows, width, minSimilarity: similarities[Math.floor(MAX_REJECTED * similarities.length)]! };
}
