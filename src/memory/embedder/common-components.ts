/** Rounds of power iteration: the first components of token tables stand well apart, and any fixed number is deterministic. */
const NUM_ITERATIONS = 24;

export interface CommonComponents {
  readonly mean: Float64Array;
  /** Orthonormal, the strongest first. */
  readonly directions: readonly Float64Array[];
}

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

function normalize(vector: Float64Array): boolean {
  const length = Math.sqrt(dot(vector, vector));
  if (!(length > 1e-12)) return false;
  for (let i = 0; i < vector.length; i++) vector[i]! /= length;
  return true;
}

/** The mean of the rows and the directions in which they differ most, by power iteration with deflation. */
export function findCommonComponents(rows: readonly Float32Array[], width: number, count: number): CommonComponents {
  const mean = new Float64Array(width);
  for (const row of rows) for (let i = 0; i < width; i++) mean[i]! += row[i]! / rows.length;
  const centred = rows.map((row) => Float32Array.from(row, (value, i) => value - mean[i]!));
  const directions: Float64Array[] = [];
  for (let component = 0; component < count; component++) {
    // Any start that is not orthogonal to the component will do; this one is no direction a table prefers.
    let vector = Float64Array.from({ length: width }, (_, i) => Math.cos(1 + i * (component + 1)));
    if (!normalize(vector)) break;
    let isFound = true;
    for (let iteration = 0; iteration < NUM_ITERATIONS && isFound; iteration++) {
      const next = new Float64Array(width);
      for (const row of centred) {
        const weight = dot(row, vector);
        for (let i = 0; i < width; i++) next[i]! += weight * row[i]!;
      }
      for (const known of directions) {
        const part = dot(next, known);
        for (let i = 0; i < width; i++) next[i]! -= part * known[i]!;
      }
      isFound = normalize(next);
      vector = next;
    }
    if (!isFound) break;
    directions.push(vector);
  }
  return { mean, directions };
}

/** In place: takes the mean and the common directions out of a vector. */
export function removeCommonComponents(vector: Float32Array, { mean, directions }: CommonComponents): void {
  for (let i = 0; i < vector.length; i++) vector[i]! -= mean[i]!;
  for (const direction of directions) {
    const part = dot(vector, direction);
    for (let i = 0; i < vector.length; i++) vector[i]! -= part * direction[i]!;
  }
}
