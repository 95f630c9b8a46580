import { checkVector } from './fisher.ts';

/** Detects that the training examples have moved to another topic. */
export interface BoundaryDetector {
  /** Adds the embedding of the next example; returns how many of the last examples belong to a new task, 0: none. */
  observe(embedding: Float32Array, atMs: number): number;
  state(): BoundaryState;
}

/** Sums over the examples of the current task that left the window. */
export interface TaskSums {
  readonly count: number;
  /** Of squared distances to the center. */
  readonly squares: number;
  /** Of squared products of neighbours relative to the center. */
  readonly products: number;
}

export interface BoundaryState extends TaskSums {
  /** Mean of the examples that left the window; empty without any. */
  readonly center: Float32Array;
  /** The window. */
  readonly recent: readonly { readonly embedding: Float32Array; readonly atMs: number }[];
}

/** Examples that are compared with the center. */
const WINDOW = 20;
/** Standard errors; the square of the shift is compared with its square. */
const THRESHOLD = 3;
/** Products relative to a center of fewer examples would be mostly its error. */
const MIN_CENTER = 10;
/** Equal embeddings of length 1 differ by rounding: products below its square are noise. */
const ROUNDING = 1e-6;

/**
 * A task is another one when both halves of the window lie away from the center in the same direction. Their product has the square of the
 * shift as its mean, which is 0 within a task; lengths alone have the spread of single examples in them, far more than the shift.
 *
 * @param minSamples - Examples of a task, without the window, before a boundary can be found.
 */
export function createBoundaryDetector(minSamples: number, from: BoundaryState | null): BoundaryDetector {
  let center = from?.center.slice() ?? new Float32Array();
  let sums: TaskSums = from === null ? NO_SUMS : { count: from.count, squares: from.squares, products: from.products };
  let recent = [...(from?.recent ?? [])];

  /** Welford's update of mean and variance; `next` is the neighbour of the example. */
  function addToCenter(embedding: Float32Array, next: Float32Array): void {
    if (sums.count === 0) center = new Float32Array(embedding.length);
    const count = sums.count + 1;
    let { squares, products } = sums;
    if (sums.count >= MIN_CENTER) products += productAround(center, embedding, next) ** 2;
    for (let i = 0; i < center.length; i++) {
      const difference = embedding[i]! - center[i]!;
      center[i]! += difference / count;
      squares += difference * (embedding[i]! - center[i]!);
    }
    sums = { count, squares, products };
  }

  function isShifted(window: readonly Float32Array[]): boolean {
    const { count, squares, products } = sums;
    if (count < Math.max(2 * MIN_CENTER, minSamples)) return false;
    const half = WINDOW / 2;
    const shift = productAround(center, meanOf(window.slice(0, half)), meanOf(window.slice(half)));
    // The center's own error is in both factors.
    const squaredShift = shift - squares / (count - 1) / count;
    const productDeviation = Math.max(ROUNDING ** 2, Math.sqrt(products / (count - MIN_CENTER)));
    return squaredShift > THRESHOLD ** 2 * productDeviation * (1 / half + 1 / count);
  }

  return {
    observe(embedding, atMs) {
      checkVector('an embedding', embedding, recent[0]?.embedding.length ?? embedding.length);
      recent.push({ embedding: embedding.slice(), atMs });
      if (recent.length <= WINDOW) return 0;
      addToCenter(recent.shift()!.embedding, recent[0]!.embedding);
      const window = recent.map((one) => one.embedding);
      if (!isShifted(window)) return 0;
      recent = recent.slice(firstOfNewTask(window, center));
      [sums, center] = [NO_SUMS, new Float32Array()];
      return recent.length;
    },
    state: () => ({ ...sums, center: center.slice(), recent: [...recent] }),
  };
}

const NO_SUMS: TaskSums = { count: 0, squares: 0, products: 0 };

/** The window still begins with examples of the old task: splits it where both parts are nearest to their means. */
function firstOfNewTask(window: readonly Float32Array[], center: Float32Array): number {
  let [best, leastCost, oldCost] = [0, Infinity, 0];
  for (const [first, embedding] of window.entries()) {
    const newTask = window.slice(first);
    const mean = meanOf(newTask);
    const cost = newTask.reduce((sum, one) => sum + productAround(mean, one, one), oldCost);
    if (cost < leastCost) [best, leastCost] = [first, cost];
    oldCost += productAround(center, embedding, embedding);
  }
  return best;
}

function meanOf(vectors: readonly Float32Array[]): Float32Array {
  const mean = new Float32Array(vectors[0]!.length);
  for (const vector of vectors) for (let i = 0; i < mean.length; i++) mean[i]! += vector[i]! / vectors.length;
  return mean;
}

/** Scalar product of a − center and b − center. */
function productAround(center: Float32Array, a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < center.length; i++) sum += (a[i]! - center[i]!) * (b[i]! - center[i]!);
  return sum;
}
