/**
 * Dense matrices in double precision, row-major, for the factors of adapters: at most a few thousand columns on one
 * side and a few hundred on the other.
 */
export interface Matrix {
  readonly numRows: number;
  readonly numCols: number;
  readonly values: Float64Array;
}

export function createMatrix(
  numRows: number,
  numCols: number,
  values: Float64Array = new Float64Array(numRows * numCols),
): Matrix {
  return { numRows, numCols, values };
}

export function multiply(left: Matrix, right: Matrix): Matrix {
  const { numRows, numCols: inner } = left;
  const { numCols } = right;
  const out = createMatrix(numRows, numCols);
  for (let row = 0; row < numRows; row++) {
    for (let i = 0; i < inner; i++) {
      const factor = left.values[row * inner + i]!;
      if (factor === 0) continue;
      for (let col = 0; col < numCols; col++)
        out.values[row * numCols + col]! += factor * right.values[i * numCols + col]!;
    }
  }
  return out;
}

export function transpose({ numRows, numCols, values }: Matrix): Matrix {
  const out = createMatrix(numCols, numRows);
  for (let row = 0; row < numRows; row++) {
    for (let col = 0; col < numCols; col++) out.values[col * numRows + row] = values[row * numCols + col]!;
  }
  return out;
}

/**
 * M = q · r with orthonormal columns in q (modified Gram-Schmidt, each column twice, orthogonal to within rounding). A
 * column that depends on earlier ones is zero in q.
 */
export function thinQr(matrix: Matrix): { readonly q: Matrix; readonly r: Matrix } {
  const { numRows, numCols } = matrix;
  const columns = transpose(matrix).values;
  const r = createMatrix(numCols, numCols);
  const columnOf = (i: number): Float64Array => columns.subarray(i * numRows, (i + 1) * numRows);
  for (let i = 0; i < numCols; i++) {
    const column = columnOf(i);
    const before = norm(column);
    for (let pass = 0; pass < 2; pass++) {
      for (let j = 0; j < i; j++) {
        const other = columnOf(j);
        const product = dot(column, other);
        r.values[j * numCols + i]! += product;
        for (let k = 0; k < numRows; k++) column[k]! -= product * other[k]!;
      }
    }
    const length = norm(column);
    // The remainder is rounding: a direction from it would be noise.
    const isNew = length > 1e-13 * before && length > 0;
    r.values[i * numCols + i] = isNew ? length : 0;
    for (let k = 0; k < numRows; k++) column[k] = isNew ? column[k]! / length : 0;
  }
  return { q: transpose(createMatrix(numCols, numRows, columns)), r };
}

/** M = u · diag(s) · vt, s descending, by one-sided Jacobi rotations. For matrices with few columns. */
export function thinSvd(matrix: Matrix): { readonly u: Matrix; readonly s: Float64Array; readonly vt: Matrix } {
  if (matrix.numRows < matrix.numCols) {
    const { u, s, vt } = thinSvd(transpose(matrix));
    return { u: transpose(vt), s, vt: transpose(u) };
  }
  const { numRows, numCols } = matrix;
  const columns = transpose(matrix).values;
  const rotations = createMatrix(numCols, numCols);
  for (let i = 0; i < numCols; i++) rotations.values[i * numCols + i] = 1;
  const columnOf = (i: number): Float64Array => columns.subarray(i * numRows, (i + 1) * numRows);
  const rotationOf = (i: number): Float64Array => rotations.values.subarray(i * numCols, (i + 1) * numCols);
  for (let sweep = 0, isDone = false; !isDone && sweep < MAX_SWEEPS; sweep++) {
    isDone = true;
    for (let i = 0; i < numCols - 1; i++) {
      for (let j = i + 1; j < numCols; j++) {
        const [a, b] = [columnOf(i), columnOf(j)];
        const [alpha, beta, gamma] = [dot(a, a), dot(b, b), dot(a, b)];
        if (Math.abs(gamma) <= 1e-15 * Math.sqrt(alpha * beta)) continue;
        isDone = false;
        const zeta = (beta - alpha) / (2 * gamma);
        const t = Math.sign(zeta || 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
        const c = 1 / Math.hypot(1, t);
        rotate(a, b, c, c * t);
        rotate(rotationOf(i), rotationOf(j), c, c * t);
      }
    }
  }
  const lengths = Array.from({ length: numCols }, (_, i) => norm(columnOf(i)));
  const order = lengths.map((_, i) => i).sort((i, j) => lengths[j]! - lengths[i]! || i - j);
  const s = Float64Array.from(order, (i) => lengths[i]!);
  const u = createMatrix(numCols, numRows);
  const vt = createMatrix(numCols, numCols);
  order.forEach((from, to) => {
    const length = lengths[from]!;
    if (length > 0)
      u.values.set(
        columnOf(from).map((value) => value / length),
        to * numRows,
      );
    vt.values.set(rotationOf(from), to * numCols);
  });
  return { u: transpose(u), s, vt };
}

/** Jacobi converges quadratically: six to ten sweeps are usual. */
const MAX_SWEEPS = 60;

function rotate(a: Float64Array, b: Float64Array, c: number, s: number): void {
  for (let i = 0; i < a.length; i++) {
    const x = a[i]!;
    a[i] = c * x - s * b[i]!;
    b[i] = s * x + c * b[i]!;
  }
}

export function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

const norm = (a: Float64Array): number => Math.sqrt(dot(a, a));
