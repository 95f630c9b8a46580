import { createRandom } from '../../core/random.ts';
import { createSmallKernels } from '../../kernels/wasm/small-kernels.ts';

/** Rounds of power iteration: enough, because the first components of token tables are well separated. */
const NUM_ITERATIONS = 12;

/** Directions that all rows of a token table share. */
export interface CommonComponents {
  readonly mean: Float64Array;
  /** Orthonormal, the strongest first. */
  readonly directions: readonly Float64Array[];
}

/** With two types of arrays, V8 makes this ten times slower. */
function dot(a: Float64Array, b: Float64Array): number {
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

function centre(row: Float32Array, mean: Float64Array, out: Float64Array): Float64Array {
  for (let i = 0; i < out.length; i++) out[i] = row[i]! - mean[i]!;
  return out;
}

/** The mean and the principal components of the rows, by power iteration with deflation. */
export function findCommonComponents(rows: readonly Float32Array[], width: number, count: number): CommonComponents {
  const mean = new Float64Array(width);
  for (const row of rows) for (let i = 0; i < width; i++) mean[i]! += row[i]! / rows.length;
  const centred = rows.map((row) => centre(row, mean, new Float64Array(width)));
  const directions: Float64Array[] = [];
  for (let component = 0; component < count; component++) {
    // Any start not orthogonal to the component works. No sines, because engines differ in their last bit.
    const random = createRandom(component);
    let vector = Float64Array.from({ length: width }, () => random.next() - 0.5);
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

/** The kernel of assembly/small/rotate.ts; offsets are in bytes. */
interface RemoveKernel {
  removeDirections(values: number, mean: number, directions: number, width: number, count: number, total: number): void;
}

/** Removes the mean and the common directions from sums of rows. */
interface CommonRemoval {
  /** f64[width]: the sum. */
  readonly sum: Float64Array;
  /** In place, with the total weight of the rows. */
  remove(total: number): void;
}

const PAGE_BYTES = 65_536;

export function createCommonRemoval({ mean, directions }: CommonComponents): CommonRemoval {
  const width = mean.length;
  const count = directions.length;
  // f64: [sum][mean][directions]
  const memory = new WebAssembly.Memory({ initial: Math.ceil((8 * width * (2 + count)) / PAGE_BYTES) });
  const { removeDirections } = createSmallKernels(memory) as unknown as RemoveKernel;
  [mean, ...directions].forEach((row, i) => new Float64Array(memory.buffer, 8 * width * (i + 1), width).set(row));
  return {
    sum: new Float64Array(memory.buffer, 0, width),
    remove: (total) => removeDirections(0, 8 * width, 16 * width, width, count, total),
  };
}

/** The length of a row without them; `scratch` has its width. */
export function residualLength(
  row: Float32Array,
  { mean, directions }: CommonComponents,
  scratch: Float64Array,
): number {
  centre(row, mean, scratch);
  let squared = dot(scratch, scratch);
  for (const direction of directions) squared -= dot(scratch, direction) ** 2;
  return Math.sqrt(Math.max(0, squared));
}
