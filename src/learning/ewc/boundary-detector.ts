import { RuvLLMError } from '../../core/errors.ts';
import { checkVector } from './fisher.ts';

/** Notices that what is being learned has changed. */
export interface BoundaryDetector {
  /** Compares a gradient with those before it, then adds it to them. */
  observeGradient(gradient: Float32Array): BoundaryReport;
  /** Compares an embedding with the mean of those before it, then adds it to them. */
  observeEmbedding(embedding: Float32Array): BoundaryReport;
  /** Forgets everything: after a boundary the new task is the normal one. */
  reset(): void;
  state(): BoundaryState;
}

export interface BoundaryReport {
  readonly isBoundary: boolean;
  /** Mean |z| of recent gradients, or how many deviations an embedding lies away; 0 until enough was seen. */
  readonly score: number;
}

export interface BoundaryState {
  readonly means: Float32Array;
  readonly squares: Float32Array;
  readonly numGradients: number;
  readonly recent: readonly number[];
  readonly center: Float32Array | null;
  readonly numEmbeddings: number;
  readonly meanDistance: number;
  readonly distanceSquares: number;
}

/** Nothing is said before this many samples: variances of a few are noise. */
const MIN_SAMPLES = 50;
/** Mean |z| over normal samples is 0.8; twice the deviation on average is another task. */
const GRADIENT_THRESHOLD = 2;
const EMBEDDING_THRESHOLD = 3;
/** Gradients whose scores are averaged: one odd sample is no new task. */
const RECENT = 10;
/** Gradients below this spread are noise of the arithmetic. */
const LEAST_DEVIATION = 1e-8;
const NOTHING: BoundaryReport = { isBoundary: false, score: 0 };

/** `numParameters` gradients are long; embeddings may have any length, the same each time. */
export function createBoundaryDetector(numParameters: number, from?: BoundaryState): BoundaryDetector {
  let means = from?.means.slice() ?? new Float32Array(numParameters);
  let squares = from?.squares.slice() ?? new Float32Array(numParameters);
  let numGradients = from?.numGradients ?? 0;
  let recent = [...(from?.recent ?? [])];
  let center = from?.center?.slice() ?? null;
  let numEmbeddings = from?.numEmbeddings ?? 0;
  // Welford's sums over the distances to the center.
  let meanDistance = from?.meanDistance ?? 0;
  let distanceSquares = from?.distanceSquares ?? 0;

  /** Mean |z| over parameters that vary at all. */
  function gradientScore(gradient: Float32Array): number {
    let [sum, count] = [0, 0];
    for (let i = 0; i < numParameters; i++) {
      const deviation = Math.sqrt(squares[i]! / (numGradients - 1));
      if (deviation < LEAST_DEVIATION) continue;
      sum += Math.abs(gradient[i]! - means[i]!) / deviation;
      count++;
    }
    return count === 0 ? 0 : sum / count;
  }

  return {
    observeGradient(gradient) {
      checkVector('a gradient', gradient, numParameters);
      let report = NOTHING;
      if (numGradients >= MIN_SAMPLES) {
        recent = [...recent, gradientScore(gradient)].slice(-RECENT);
        const score = recent.reduce((sum, value) => sum + value, 0) / recent.length;
        report = { isBoundary: recent.length === RECENT && score > GRADIENT_THRESHOLD, score };
      }
      numGradients++;
      for (let i = 0; i < numParameters; i++) {
        const difference = gradient[i]! - means[i]!;
        means[i]! += difference / numGradients;
        squares[i]! += difference * (gradient[i]! - means[i]!);
      }
      return report;
    },
    observeEmbedding(embedding) {
      center ??= new Float32Array(embedding.length);
      if (embedding.length !== center.length) {
        throw new RuvLLMError('invalid_option', `an embedding of ${embedding.length} values after ${center.length}`, {
          data: { length: embedding.length, expected: center.length },
        });
      }
      checkVector('an embedding', embedding, center.length);
      const from = center;
      const distance = Math.sqrt(embedding.reduce((sum, value, i) => sum + (value - from[i]!) ** 2, 0));
      const deviation = Math.sqrt(distanceSquares / Math.max(1, numEmbeddings - 1));
      const isKnown = numEmbeddings >= MIN_SAMPLES && deviation >= LEAST_DEVIATION;
      const score = isKnown ? (distance - meanDistance) / deviation : 0;
      numEmbeddings++;
      for (let i = 0; i < from.length; i++) from[i]! += (embedding[i]! - from[i]!) / numEmbeddings;
      // The first distance is to the zero vector, not to a mean.
      if (numEmbeddings > 1) {
        const difference = distance - meanDistance;
        meanDistance += difference / (numEmbeddings - 1);
        distanceSquares += difference * (distance - meanDistance);
      }
      return { isBoundary: score > EMBEDDING_THRESHOLD, score };
    },
    reset() {
      means = new Float32Array(numParameters);
      squares = new Float32Array(numParameters);
      [numGradients, numEmbeddings, meanDistance, distanceSquares] = [0, 0, 0, 0];
      recent = [];
      center = null;
    },
    state: () => ({
      means: means.slice(),
      squares: squares.slice(),
      numGradients,
      recent: [...recent],
      center: center?.slice() ?? null,
      numEmbeddings,
      meanDistance,
      distanceSquares,
    }),
  };
}
