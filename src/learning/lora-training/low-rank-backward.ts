/** The addition scale · B · (A · x) to some rows of a matrix, and the gradient of its output. */
export interface LowRankBackward {
  /** f32[numTokens × numCols] */
  readonly x: Float32Array;
  /** f32[numTokens × numRows] */
  readonly dY: Float32Array;
  /** f32[rank × numCols] */
  readonly a: Float32Array;
  /** f32[numRows × rank] */
  readonly b: Float32Array;
  /** Added to; shaped like a and b. */
  readonly dA: Float32Array;
  readonly dB: Float32Array;
  /** Added to; shaped like x; null if nothing below is adapted. */
  readonly dX: Float32Array | null;
  readonly numTokens: number;
  readonly numCols: number;
  readonly numRows: number;
  readonly rank: number;
  readonly scale: number;
}

/** Token by token: u = A·x, then dB += dy·uᵀ, w = Bᵀ·dy, dA += w·xᵀ, dx += Aᵀ·w. */
export function lowRankBackward(op: LowRankBackward): void {
  const { x, dY, a, b, dA, dB, dX, numTokens, numCols, numRows, rank, scale } = op;
  const [u, w] = [new Float64Array(rank), new Float64Array(rank)];
  for (let token = 0; token < numTokens; token++) {
    const [xStart, yStart] = [token * numCols, token * numRows];
    for (let r = 0; r < rank; r++) {
      let sum = 0;
      for (let i = 0; i < numCols; i++) sum += a[r * numCols + i]! * x[xStart + i]!;
      u[r] = sum * scale;
    }
    w.fill(0);
    for (let row = 0; row < numRows; row++) {
      const gradient = dY[yStart + row]!;
      if (gradient === 0) continue;
      const at = row * rank;
      for (let r = 0; r < rank; r++) {
        dB[at + r]! += gradient * u[r]!;
        w[r]! += gradient * b[at + r]!;
      }
    }
    for (let r = 0; r < rank; r++) {
      const factor = w[r]! * scale;
      if (factor === 0) continue;
      const at = r * numCols;
      for (let i = 0; i < numCols; i++) dA[at + i]! += factor * x[xStart + i]!;
      if (dX !== null) for (let i = 0; i < numCols; i++) dX[xStart + i]! += factor * a[at + i]!;
    }
  }
}
