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
 * The Cholesky factor of the first `size` columns of gram + ridge·I, f64[width × width]; the first column is the constant and is not
 * penalized. Its first rows and columns are the factor of the first columns alone, so that one serves every smaller number of columns.
 */
export function factorRidge(gram: Float64Array, width: number, ridge: number, size = width): Float64Array {
  const lower = new Float64Array(width * width);
  for (let i = 0; i < size; i++) {
    const row = i * width;
    let j = 0;
    // Four columns at a time: their sums do not wait for each other, and each number of the row is read once for all.
    for (; j + 4 <= i; j += 4) {
      const [a, b, c, d] = [j * width, (j + 1) * width, (j + 2) * width, (j + 3) * width];
      let [first, second, third, fourth] = [gram[row + j]!, gram[row + j + 1]!, gram[row + j + 2]!, gram[row + j + 3]!];
      for (let k = 0; k < j; k++) {
        const value = lower[row + k]!;
        first -= value * lower[a + k]!;
        second -= value * lower[b + k]!;
        third -= value * lower[c + k]!;
        fourth -= value * lower[d + k]!;
      }
      first /= lower[a + j]!;
      second = (second - first * lower[b + j]!) / lower[b + j + 1]!;
      third = (third - first * lower[c + j]! - second * lower[c + j + 1]!) / lower[c + j + 2]!;
      fourth -= first * lower[d + j]! + second * lower[d + j + 1]! + third * lower[d + j + 2]!;
      lower[row + j] = first;
      lower[row + j + 1] = second;
      lower[row + j + 2] = third;
      lower[row + j + 3] = fourth / lower[d + j + 3]!;
    }
    for (; j <= i; j++) {
      let sum = gram[row + j]!;
      // Keeps an empty column from dividing by zero.
      if (i === j) sum += i === 0 ? 1e-9 : ridge;
      for (let k = 0; k < j; k++) sum -= lower[row + k]! * lower[j * width + k]!;
      lower[row + j] = i === j ? Math.sqrt(Math.max(1e-12, sum)) : sum / lower[j * width + j]!;
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
    // Along the rows of the factor: its columns are far apart in memory.
    for (let i = size - 1; i >= 0; i--) {
      const value = solved[at + i]! / lower[i * width + i]!;
      solved[at + i] = value;
      for (let k = 0; k < i; k++) solved[at + k]! -= lower[i * width + k]! * value;
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
