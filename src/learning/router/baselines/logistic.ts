import type { Estimator } from '../estimator.ts';
import { foldsOf } from '../folds.ts';
import { importanceOf } from '../labels.ts';
import { NUM_QUERY_FEATURES, type PolicyState, type RouteExample, type RouteInput } from '../types.ts';
import { minimize } from './minimize.ts';

export interface LogisticOptions {
  /** L2 penalties per example; one is chosen on held-out groups. */
  readonly penalties: readonly number[];
  /** Scale of the query block beside the sentence vector. */
  readonly queryScale: number;
  readonly numSteps: number;
}

export const LOGISTIC_DEFAULTS: LogisticOptions = { penalties: [3e-4, 3e-2], queryScale: 0.1, numSteps: 40 };

/** Sentence vectors have length 1, and most share a direction: differences between them are a few tenths. */
const VECTOR_SCALE = 5;
const NUM_FOLDS = 4;
const SEED = 7;
/** Per feedback, of the gradient. */
const LEARNING_RATE = 0.3;

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

/** The constant, the sentence vector, the query block. */
function rowOf({ vector, query }: RouteInput, queryScale: number, out: Float64Array, at = 0): void {
  const width = vector!.length;
  out[at] = 1;
  for (let i = 0; i < width; i++) out[at + 1 + i] = VECTOR_SCALE * vector![i]!;
  for (let i = 0; i < NUM_QUERY_FEATURES; i++) out[at + 1 + width + i] = queryScale * query[i]!;
}

/** `weights`: f32[numCandidates × (1 + width of the vector + 32)]. */
function createLogistic(weights: Float32Array, numCandidates: number, queryScale: number): Estimator {
  const size = weights.length / numCandidates;
  const row = new Float64Array(size);
  const predict = (candidate: number): number => {
    let sum = 0;
    for (let i = 0, at = candidate * size; i < size; i++, at++) sum += weights[at]! * row[i]!;
    return sigmoid(sum);
  };
  return {
    name: 'logistic',
    estimate(input) {
      rowOf(input, queryScale, row);
      const qualities = Float64Array.from({ length: numCandidates }, (_, i) => predict(i));
      return {
        qualities,
        confidence: NaN,
        why: { kind: 'best', detail: 'logistic regression on the sentence vector' },
      };
    },
    update({ input, candidate, quality, propensity }) {
      rowOf(input, queryScale, row);
      let length = 0;
      for (const value of row) length += value * value;
      const step = (importanceOf(propensity) * LEARNING_RATE * (quality - predict(candidate))) / Math.sqrt(length);
      for (let i = 0, at = candidate * size; i < size; i++, at++) weights[at]! += step * row[i]!;
    },
    save: () => ({ kind: 'logistic', numbers: { numCandidates, queryScale }, arrays: { weights } }),
  };
}

/** Mean log loss of the known outcomes. */
function lossOf(estimator: Estimator, examples: readonly RouteExample[]): number {
  let [sum, total] = [0, 0];
  for (const { input, outcomes, propensities } of examples) {
    const { qualities } = estimator.estimate(input);
    outcomes.forEach((outcome, i) => {
      if (Number.isNaN(outcome)) return;
      const weight = importanceOf(propensities?.[i] ?? 1);
      const bounded = Math.max(1e-9, Math.min(1 - 1e-9, qualities[i]!));
      sum -= weight * (outcome * Math.log(bounded) + (1 - outcome) * Math.log(1 - bounded));
      total += weight;
    });
  }
  return sum / total;
}

/** Logistic regression of each candidate's outcome, with the penalty that suits groups it was not trained on. */
export function trainLogistic(
  examples: readonly RouteExample[],
  numCandidates: number,
  { penalties, ...options }: LogisticOptions = LOGISTIC_DEFAULTS,
): Estimator {
  const folds = foldsOf(examples, NUM_FOLDS, SEED);
  const train = examples.filter((_, i) => folds[i] !== 0);
  const heldOut = examples.filter((_, i) => folds[i] === 0);
  const losses = penalties.map((penalty) =>
    penalties.length === 1 || train.length === 0
      ? 0
      : lossOf(fit(train, numCandidates, { penalty, ...options }), heldOut),
  );
  return fit(examples, numCandidates, { penalty: penalties[losses.indexOf(Math.min(...losses))]!, ...options });
}

interface FitOptions extends Omit<LogisticOptions, 'penalties'> {
  readonly penalty: number;
}

/** By L-BFGS; candidates without outcomes get 0.5. */
function fit(
  examples: readonly RouteExample[],
  numCandidates: number,
  { penalty, queryScale, numSteps }: FitOptions,
): Estimator {
  const size = 1 + (examples[0]?.input.vector?.length ?? 0) + NUM_QUERY_FEATURES;
  const rows = new Float64Array(examples.length * size);
  examples.forEach(({ input }, i) => rowOf(input, queryScale, rows, i * size));
  const weights = new Float32Array(numCandidates * size);
  for (let candidate = 0; candidate < numCandidates; candidate++) {
    const tried = examples.flatMap(({ outcomes }, i) => (Number.isNaN(outcomes[candidate]!) ? [] : [i]));
    if (tried.length === 0) continue;
    const targets = tried.map((i) => examples[i]!.outcomes[candidate]!);
    const importances = tried.map((i) => importanceOf(examples[i]!.propensities?.[candidate] ?? 1));
    const total = importances.reduce((sum, one) => sum + one, 0);
    weights.set(
      minimize(size, numSteps, (point, gradient) => {
        let loss = 0;
        for (let i = 0; i < size; i++) {
          // The constant is not penalized, apart from what keeps it finite if all outcomes are alike.
          const share = i === 0 ? penalty / 100 : penalty;
          loss += (share / 2) * point[i]! ** 2;
          gradient[i] = share * point[i]!;
        }
        for (let k = 0; k < tried.length; k++) {
          const at = tried[k]! * size;
          let sum = 0;
          for (let i = 0; i < size; i++) sum += point[i]! * rows[at + i]!;
          const weight = importances[k]! / total;
          // log(1 + e^sum) without overflow
          loss += weight * (Math.max(0, sum) + Math.log1p(Math.exp(-Math.abs(sum))) - targets[k]! * sum);
          const step = weight * (sigmoid(sum) - targets[k]!);
          for (let i = 0; i < size; i++) gradient[i]! += step * rows[at + i]!;
        }
        return loss;
      }),
      candidate * size,
    );
  }
  return createLogistic(weights, numCandidates, queryScale);
}

export const logisticLength = (numCandidates: number, width: number): number =>
  numCandidates * (1 + width + NUM_QUERY_FEATURES);

export const loadLogistic = ({ numbers, arrays }: PolicyState): Estimator =>
  createLogistic(arrays['weights'] as Float32Array, numbers['numCandidates']!, numbers['queryScale']!);
