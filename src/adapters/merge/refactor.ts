import { createRandom } from '../../core/random.ts';
import { createMatrix, type Matrix, multiply, thinQr, thinSvd, transpose } from './thin-svd.ts';

/** ΔW as a product: b is numRows x k, a is k x numCols. */
export interface Product {
  readonly b: Matrix;
  readonly a: Matrix;
}

/** The best approximation of lower rank. */
export interface Refactored extends Product {
  readonly rank: number;
  /** The kept share of the squares of all singular values: 1 is exact. */
  readonly keptEnergy: number;
}

/** Singular values below this share of the largest are rounding errors of the f32 factors. */
const NOISE = 1e-7;

/**
 * The product with a rank of at most `maxRank`, optimal in the least-squares sense: QR of both factors and SVD of the
 * matrix between them, without forming the whole matrix. Each side gets the root of the singular values.
 */
export function refactorProduct({ b, a }: Product, maxRank: number): Refactored {
  const left = thinQr(b);
  const right = thinQr(transpose(a));
  const { u, s, vt } = thinSvd(multiply(left.r, transpose(right.r)));
  return cut(multiply(left.q, u), s, multiply(vt, transpose(right.q)), maxRank);
}

/** Up to this smaller side the decomposition is complete; beyond it that takes minutes (cubic time). */
const EXACT_SIDE = 192;
/** Extra directions and rounds: the error is then within a few percent of the best even if values fall slowly. */
const SPARE_DIRECTIONS = 16;
const POWER_ROUNDS = 4;

/** The same for a dense matrix: exact if one side is short, else by subspace iteration (Halko et al. 2011, 4.4). */
export function refactorDense(matrix: Matrix, maxRank: number): Refactored {
  const flipped = transpose(matrix);
  const isTall = matrix.numRows >= matrix.numCols;
  if (Math.min(matrix.numRows, matrix.numCols) <= EXACT_SIDE) {
    const { q, r } = thinQr(isTall ? matrix : flipped);
    const { u, s, vt } = thinSvd(r);
    const long = multiply(q, u);
    return isTall ? cut(long, s, vt, maxRank) : cut(transpose(vt), s, transpose(long), maxRank);
  }
  const random = createRandom(0);
  const start = createMatrix(matrix.numCols, maxRank + SPARE_DIRECTIONS);
  for (let i = 0; i < start.values.length; i++) start.values[i] = random.next() - 0.5;
  let { q } = thinQr(multiply(matrix, start));
  for (let round = 0; round < POWER_ROUNDS; round++) ({ q } = thinQr(multiply(matrix, thinQr(multiply(flipped, q)).q)));
  const refactored = refactorProduct({ b: q, a: multiply(transpose(q), matrix) }, maxRank);
  const energy = (part: Matrix): number => part.values.reduce((sum, value) => sum + value * value, 0);
  // The part outside the directions counts as lost.
  return { ...refactored, keptEnergy: energy(multiply(refactored.b, refactored.a)) / energy(matrix) };
}

function cut(u: Matrix, s: Float64Array, vt: Matrix, maxRank: number): Refactored {
  const total = s.reduce((sum, value) => sum + value * value, 0);
  const numReal = s.filter((value) => value > NOISE * s[0]!).length;
  const rank = Math.max(1, Math.min(maxRank, numReal));
  const b = createMatrix(u.numRows, rank);
  const a = createMatrix(rank, vt.numCols);
  let keptSquares = 0;
  for (let i = 0; i < rank; i++) {
    const value = s[i] ?? 0;
    const root = Math.sqrt(value);
    keptSquares += value * value;
    for (let row = 0; row < u.numRows; row++) b.values[row * rank + i] = root * u.values[row * u.numCols + i]!;
    for (let col = 0; col < vt.numCols; col++) a.values[i * vt.numCols + col] = root * vt.values[i * vt.numCols + col]!;
  }
  return { b, a, rank, keptEnergy: total === 0 ? 1 : keptSquares / total };
}
