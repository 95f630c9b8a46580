/** Sums for least squares by fold, so that any fold can be left out without another pass over the rows. */
export interface NormalEquations {
  readonly width: number;
  readonly numTargets: number;
  /** By fold, f64[width × width], both halves. */
  readonly grams: readonly Float64Array[];
  /** By fold, f64[numTargets × width]. */
  readonly rights: readonly Float64Array[];
  /** By fold, f64[numTargets]: weighted sums of squared targets. */
  readonly squares: readonly Float64Array[];
}

export function sumEquations(
  rows: readonly Float64Array[],
  targets: readonly Float64Array[],
  weights: ArrayLike<number>,
  folds: ArrayLike<number>,
  numFolds: number,
): NormalEquations {
  const width = rows[0]?.length ?? 0;
  const numTargets = targets[0]?.length ?? 0;
  const grams = Array.from({ length: numFolds }, () => new Float64Array(width * width));
  const rights = Array.from({ length: numFolds }, () => new Float64Array(numTargets * width));
  const squares = Array.from({ length: numFolds }, () => new Float64Array(numTargets));
  rows.forEach((row, r) => {
    const [right, weight] = [rights[folds[r]!]!, weights[r]!];
    for (let t = 0; t < numTargets; t++) {
      const target = targets[r]![t]!;
      squares[folds[r]!]![t]! += weight * target * target;
      if (target !== 0) for (let i = 0; i < width; i++) right[t * width + i]! += weight * target * row[i]!;
    }
  });
  grams.forEach((gram, fold) => addProducts(gram, rows, weights, rows.flatMap((_, r) => (folds[r] === fold ? [r] : [])))); // prettier-ignore
  for (const gram of grams)
    for (let i = 0; i < width; i++) for (let j = 0; j < i; j++) gram[j * width + i] = gram[i * width + j]!;
  return { width, numTargets, grams, rights, squares };
}

/** Adds the weighted products of the chosen rows to the lower half, four rows at a time: row by row, it would be bound by the memory traffic of the gram matrix. */
function addProducts(
  gram: Float64Array,
  rows: readonly Float64Array[],
  weights: ArrayLike<number>,
  chosen: readonly number[],
): void {
  const width = Math.sqrt(gram.length);
  const none = new Float64Array(width);
  for (let at = 0; at < chosen.length; at += 4) {
    const [a, b, c, d] = [0, 1, 2, 3].map((k) => rows[chosen[at + k] ?? -1] ?? none) as [Float64Array, Float64Array, Float64Array, Float64Array]; // prettier-ignore
    const [wa, wb, wc, wd] = [0, 1, 2, 3].map((k) => weights[chosen[at + k] ?? -1] ?? 0) as [number, number, number, number]; // prettier-ignore
    for (let i = 0; i < width; i++) {
      const [va, vb, vc, vd] = [wa * a[i]!, wb * b[i]!, wc * c[i]!, wd * d[i]!];
      const row = i * width;
      for (let j = 0; j <= i; j++) gram[row + j]! += va * a[j]! + vb * b[j]! + vc * c[j]! + vd * d[j]!;
    }
  }
}

/** The sum of all folds but one; of all for −1. */
export function leaveOut(parts: readonly Float64Array[], without: number): Float64Array {
  const sum = new Float64Array(parts[0]!.length);
  parts.forEach((part, fold) => {
    if (fold !== without) for (let i = 0; i < sum.length; i++) sum[i]! += part[i]!;
  });
  return sum;
}

/**
 * The Cholesky factor of gram + ridge·I, f64[width × width]; the first column is the constant and is not penalized. Its first rows
 * and columns are the factor of the first columns alone, so that one serves every number of columns.
 */
export function factorRidge(gram: Float64Array, width: number, ridge: number): Float64Array {
  const lower = new Float64Array(width * width);
  for (let i = 0; i < width; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = gram[i * width + j]!;
      // Keeps an empty column from dividing by zero.
      if (i === j) sum += i === 0 ? 1e-9 : ridge;
      for (let k = 0; k < j; k++) sum -= lower[i * width + k]! * lower[j * width + k]!;
      lower[i * width + j] = i === j ? Math.sqrt(Math.max(1e-12, sum)) : sum / lower[j * width + j]!;
    }
  }
  return lower;
}

/** The least squares on the first `size` columns for each target: f64[numTargets × width], zero beyond `size`. */
export function solveRidge(lower: Float64Array, rights: Float64Array, width: number, size: number): Float64Array {
  const solved = new Float64Array(rights.length);
  for (let at = 0; at < rights.length; at += width) {
    for (let i = 0; i < size; i++) {
      let sum = rights[at + i]!;
      for (let k = 0; k < i; k++) sum -= lower[i * width + k]! * solved[at + k]!;
      solved[at + i] = sum / lower[i * width + i]!;
    }
    for (let i = size - 1; i >= 0; i--) {
      let sum = solved[at + i]!;
      for (let k = i + 1; k < size; k++) sum -= lower[k * width + i]! * solved[at + k]!;
      solved[at + i] = sum / lower[i * width + i]!;
    }
  }
  return solved;
}

/** By target, the weighted sum of squared errors of the solutions on the examples of one fold, from its sums alone. */
export function squaredErrors(equations: NormalEquations, fold: number, solved: Float64Array): Float64Array {
  const { width, grams, rights, squares } = equations;
  return squares[fold]!.map((squared, t) => {
    let error = squared;
    const at = t * width;
    for (let i = 0; i < width; i++) {
      const value = solved[at + i]!;
      if (value === 0) continue;
      let product = 0;
      for (let j = 0; j < width; j++) product += grams[fold]![i * width + j]! * solved[at + j]!;
      error += value * (product - 2 * rights[fold]![at + i]!);
    }
    return error;
  });
}
