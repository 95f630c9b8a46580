import type { Arena, MatchLengthsOp, MixStreamsOp, SparsifyOp } from '../contract.ts';

export function mixStreams(arena: Arena, op: MixStreamsOp): void {
  const { numOut, numIn, numRows, dim, shift } = op;
  const rowOf = (streams: number, stream: number, row: number): Float32Array =>
    arena.f32(streams + (stream * numRows + row) * dim * 4, dim);
  for (let t = 0; t < numRows; t++) {
    const coefficients = arena.f32(op.coefficients + t * numOut * numIn * 4, numOut * numIn);
    for (let i = 0; i < numOut; i++) {
      const sums = Float64Array.from(rowOf(op.base, i, t));
      for (let j = 0; j < numIn; j++) {
        const row = rowOf(op.x, j, t);
        const factor = coefficients[i * numIn + j]! + shift;
        for (let c = 0; c < dim; c++) sums[c]! += factor * row[c]!;
      }
      rowOf(op.out, i, t).set(sums);
    }
  }
}

const lengthOf = (row: Float32Array): number => Math.sqrt(row.reduce((sum, value) => sum + value * value, 0));

export function matchLengths(arena: Arena, { x, target, numRows, dim }: MatchLengthsOp): void {
  for (let r = 0; r < numRows; r++) {
    const row = arena.f32(x + r * dim * 4, dim);
    const length = lengthOf(row);
    const factor = length === 0 ? 0 : lengthOf(arena.f32(target + r * dim * 4, dim)) / length;
    for (let c = 0; c < dim; c++) row[c]! *= factor;
  }
}

export function sparsify(arena: Arena, { x, numRows, dim, threshold }: SparsifyOp): void {
  for (let r = 0; r < numRows; r++) {
    const row = arena.f32(x + r * dim * 4, dim);
    const mean = row.reduce((sum, value) => sum + value, 0) / dim;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (dim - 1);
    const cutoff = mean + threshold * Math.sqrt(variance);
    // Not Math.max(0, …), which would also hide a NaN on packs that compare.
    for (let c = 0; c < dim; c++) row[c] = row[c]! <= cutoff ? 0 : row[c]! - cutoff;
  }
}
