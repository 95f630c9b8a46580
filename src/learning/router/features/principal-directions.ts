import { createRandom } from '../../../core/random.ts';
import type { SparseVector } from '../types.ts';

/** Enough for directions that are only a view of the data: they need to be the same each time, not exact. */
const NUM_ROUNDS = 3;
/** Seconds would go by with more. */
const MAX_ROWS = 1500;

/** Gram–Schmidt over the columns of f32[numRows × numCols], columns that vanish becoming zero. */
function orthonormalize(matrix: Float32Array, numRows: number, numCols: number): void {
  for (let col = 0; col < numCols; col++) {
    // Twice: once leaves what rounding brought back.
    for (let pass = 0; pass < 2; pass++) {
      const dots = new Float64Array(col);
      for (let row = 0; row < numRows; row++) {
        const at = row * numCols;
        const value = matrix[at + col]!;
        if (value !== 0) for (let j = 0; j < col; j++) dots[j]! += value * matrix[at + j]!;
      }
      for (let row = 0; row < numRows; row++) {
        const at = row * numCols;
        let value = matrix[at + col]!;
        for (let j = 0; j < col; j++) value -= dots[j]! * matrix[at + j]!;
        matrix[at + col] = value;
      }
    }
    let squared = 0;
    for (let row = 0; row < numRows; row++) squared += matrix[row * numCols + col]! ** 2;
    const scale = squared > 1e-12 ? 1 / Math.sqrt(squared) : 0;
    for (let row = 0; row < numRows; row++) matrix[row * numCols + col]! *= scale;
  }
}

/** Adds the projection of a row onto the directions, f32[width × numDirections], to `out`. */
export function project(row: SparseVector, directions: Float32Array, out: Float32Array | Float64Array): void {
  const size = out.length;
  for (let i = 0; i < row.indices.length; i++) {
    const at = row.indices[i]! * size;
    const value = row.values[i]!;
    for (let j = 0; j < size; j++) out[j]! += value * directions[at + j]!;
  }
}

/** The directions along which rows differ most, by subspace iteration from a seeded start: f32[width × numDirections]. */
export function findDirections(
  rows: readonly SparseVector[],
  width: number,
  numDirections: number,
  seed: number,
): Float32Array {
  const random = createRandom(seed);
  const step = Math.max(1, rows.length / MAX_ROWS);
  const used = Array.from({ length: Math.min(rows.length, MAX_ROWS) }, (_, i) => rows[Math.floor(i * step)]!);
  let directions = Float32Array.from({ length: width * numDirections }, () => random.next() - 0.5);
  orthonormalize(directions, width, numDirections);
  for (let round = 0; round < NUM_ROUNDS; round++) {
    const next = new Float32Array(width * numDirections);
    for (const row of used) {
      const projected = new Float64Array(numDirections);
      project(row, directions, projected);
      for (let i = 0; i < row.indices.length; i++) {
        const at = row.indices[i]! * numDirections;
        const value = row.values[i]!;
        for (let j = 0; j < numDirections; j++) next[at + j]! += value * projected[j]!;
      }
    }
    orthonormalize(next, width, numDirections);
    directions = next;
  }
  return directions;
}
