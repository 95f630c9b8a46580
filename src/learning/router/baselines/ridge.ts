import { foldsOf } from '../folds.ts';
import type { Estimator } from '../estimator.ts';
import { placesInVersion1 } from '../features/state-features.ts';
import { importanceOf } from '../labels.ts';
import { NUM_FEATURES, NUM_QUERY_FEATURES, type PolicyState, type RouteExample, type RouteInput } from '../types.ts';
import {
  factorRidge,
  leaveOut,
  type NormalEquations,
  solveRidge,
  squaredErrors,
  sumEquations,
} from './normal-equations.ts';

/**
 * The constant first, then the features: those of the embedding last, in order of how much they vary. By cosine they come before the
 * others, which then are what can be left out.
 */
const WIDTH = NUM_FEATURES + 1;
export interface RidgeOptions {
  /** Added to the squared length of every feature; one is chosen. */
  readonly ridges: readonly number[];
  /** How many of the embedding's directions are used, most varying first; one is chosen. Fewer carry over to groups unlike those seen. */
  readonly directions: readonly number[];
  /** Whether to believe in no differences between requests is a choice as well. */
  readonly mayBeConstant: boolean;
  /**
   * Whether the embedding's directions count alike, however little they vary, or as in the unit vector: then nearness of requests is
   * their cosine, and what few requests differ by has to be learned from many.
   */
  readonly isScaled: boolean;
}

export const RIDGE_DEFAULTS: RidgeOptions = {
  ridges: [30, 300, 3000, 30_000],
  directions: [0, 8, 24, 48, 96],
  mayBeConstant: true,
  isScaled: true,
};
/** About as long as the features of the query, which a penalty is for as well. */
const COSINE_SCALE = 5;
const NUM_FOLDS = 4;
const SEED = 5;
/** Of an error that is laid to the candidate as such, when learning from one outcome. */
const MEAN_SHARE = 0.05;
/** Of an error that one outcome takes away for a request just like it. */
const LEARNING_RATE = 0.3;

function rowOf(input: RouteInput, isScaled: boolean): Float64Array {
  const features = input.features;
  const row = new Float64Array(WIDTH);
  const states = NUM_QUERY_FEATURES + input.embedding.length;
  const size = input.embedding.length;
  const others = isScaled ? 1 : 1 + size;
  row[0] = 1;
  row.set(features.subarray(0, NUM_QUERY_FEATURES), others);
  row.set(features.subarray(states), others + NUM_QUERY_FEATURES);
  if (isScaled) row.set(features.subarray(NUM_QUERY_FEATURES, states), 1 + NUM_FEATURES - size);
  else for (let i = 0; i < size; i++) row[1 + i] = COSINE_SCALE * input.embedding[i]!;
  return row;
}

/** How many of the first columns may be used, by what was asked for. */
function sizesOf({ directions, isScaled }: RidgeOptions, numDirections: number): number[] {
  const counts = directions.map((count) => Math.min(count, numDirections));
  if (isScaled) return counts.map((count) => WIDTH - numDirections + count);
  return [...counts.filter((count) => count > 0).map((count) => 1 + count), WIDTH];
}

/**
 * Chooses the number of columns and the ridge by the error on held-out folds of groups: once for the first targets together and
 * once for each of the last `numApart`.
 */
function fitHeldOut(
  equations: NormalEquations,
  sizes: readonly number[],
  options: RidgeOptions,
  numApart = 0,
): Float64Array {
  const { width, numTargets, grams, rights } = equations;
  const choices = [
    ...(options.mayBeConstant ? [{ size: 1, ridge: 1 }] : []),
    ...options.ridges.flatMap((ridge) => sizes.map((size) => ({ size, ridge }))),
  ];
  const solveAll = (without: number): Float64Array[] => {
    const [gram, right] = [leaveOut(grams, without), leaveOut(rights, without)];
    const factors = new Map(choices.map(({ ridge }) => [ridge, null as Float64Array | null]));
    return choices.map(({ size, ridge }) => {
      const lower = factors.get(ridge) ?? factorRidge(gram, width, ridge);
      factors.set(ridge, lower);
      return solveRidge(lower, right, width, size);
    });
  };
  const numTogether = numTargets - numApart;
  const errors = choices.map(() => new Float64Array(numApart + 1));
  // One group cannot be left out: then the last choice, which holds back most.
  if (grams.length > 1 && choices.length > 1)
    grams.forEach((_, fold) =>
      solveAll(fold).forEach((solved, i) =>
        squaredErrors(equations, fold, solved).forEach((error, t) => {
          errors[i]![Math.max(0, t - numTogether + 1)]! += error;
        }),
      ),
    );
  const best = (part: number): number => {
    const values = errors.map((error) => error[part]!);
    return grams.length > 1 ? values.indexOf(Math.min(...values)) : choices.length - 1;
  };
  const solutions = solveAll(-1);
  const fitted = new Float64Array(numTargets * width);
  for (let t = 0; t < numTargets; t++)
    fitted.set(solutions[best(Math.max(0, t - numTogether + 1))]!.subarray(t * width, (t + 1) * width), t * width);
  return fitted;
}

/** f32[numCandidates × WIDTH] */
function createRidge(weights: Float32Array, isScaled: boolean): Estimator {
  const numCandidates = weights.length / WIDTH;
  const predict = (candidate: number, row: Float64Array): number => {
    let sum = 0;
    for (let i = 0, at = candidate * WIDTH; i < WIDTH; i++, at++) sum += weights[at]! * row[i]!;
    return sum;
  };
  return {
    name: isScaled ? 'ridge' : 'cosine ridge',
    estimate(input) {
      const row = rowOf(input, isScaled);
      const qualities = Float64Array.from({ length: numCandidates }, (_, i) => predict(i, row));
      return { qualities, confidence: NaN, why: { kind: 'best', detail: 'least squares' } };
    },
    update({ input, candidate, quality, propensity }) {
      const row = rowOf(input, isScaled);
      const error = quality - predict(candidate, row);
      const share = 1 - (1 - LEARNING_RATE) ** importanceOf(propensity);
      const at = candidate * WIDTH;
      let length = 0;
      for (let i = 1; i < WIDTH; i++) length += row[i]! ** 2;
      weights[at]! += MEAN_SHARE * share * error;
      const step = ((1 - MEAN_SHARE) * share * error) / Math.max(1, length);
      for (let i = 1; i < WIDTH; i++) weights[at + i]! += step * row[i]!;
    },
    save: () => ({ kind: 'ridge', numbers: { isScaled: +isScaled }, arrays: { weights } }),
  };
}

/**
 * Least squares on the features of the whole text. Where every candidate was tried, their common level and each one's distance
 * from it are fitted apart: a choice depends on the distances alone, and what tells hard from easy would drown them.
 */
export function trainRidge(
  examples: readonly RouteExample[],
  numCandidates: number,
  options: RidgeOptions = RIDGE_DEFAULTS,
): Estimator {
  const weights = new Float32Array(numCandidates * WIDTH);
  if (examples.length === 0) {
    for (let i = 0; i < numCandidates; i++) weights[i * WIDTH] = 0.5;
    return createRidge(weights, options.isScaled);
  }
  const rows = examples.map(({ input }) => rowOf(input, options.isScaled));
  const sizes = sizesOf(options, examples[0]!.input.embedding.length);
  const numFolds = Math.min(NUM_FOLDS, new Set(examples.map(({ group }) => group)).size);
  const folds = foldsOf(examples, numFolds, SEED);
  const isWhole = examples.every(({ outcomes, propensities }) => propensities === undefined && !outcomes.some(Number.isNaN)); // prettier-ignore
  if (isWhole) {
    // The last target is the level.
    const targets = examples.map(({ outcomes }) => {
      const level = outcomes.reduce((sum, value) => sum + value, 0) / numCandidates;
      return Float64Array.from({ length: numCandidates + 1 }, (_, i) => (i < numCandidates ? outcomes[i]! - level : level)); // prettier-ignore
    });
    const equations = sumEquations(rows, targets, new Float64Array(rows.length).fill(1), folds, numFolds);
    const fitted = fitHeldOut(equations, sizes, options, 1);
    for (let i = 0; i < weights.length; i++) weights[i] = fitted[i]! + fitted[weights.length + (i % WIDTH)]!;
    return createRidge(weights, options.isScaled);
  }
  for (let candidate = 0; candidate < numCandidates; candidate++) {
    const known = examples.flatMap(({ outcomes }, r) => (Number.isNaN(outcomes[candidate]!) ? [] : [r]));
    if (known.length === 0) {
      weights[candidate * WIDTH] = 0.5;
      continue;
    }
    const targets = known.map((r) => Float64Array.of(examples[r]!.outcomes[candidate]!));
    const importances = known.map((r) => importanceOf(examples[r]!.propensities?.[candidate] ?? 1));
    const equations = sumEquations(known.map((r) => rows[r]!), targets, importances, known.map((r) => folds[r]!), numFolds); // prettier-ignore
    weights.set(fitHeldOut(equations, sizes, options), candidate * WIDTH);
  }
  return createRidge(weights, options.isScaled);
}

/** The weights of a router of version 1, for the places that retrieval and system have now. */
export function upgradeRidge(
  state: PolicyState,
  { embedding, retrieval, system }: { readonly embedding: number; readonly retrieval: number; readonly system: number },
): PolicyState {
  const old = state.arrays['weights'] as Float32Array;
  const weights = old.slice();
  const places = placesInVersion1(retrieval, system);
  const states = 1 + NUM_QUERY_FEATURES + (state.numbers['isScaled'] === 0 ? embedding : 0);
  for (let at = states; at < weights.length; at += WIDTH)
    places.forEach((place, i) => (weights[at + i] = place < 0 ? 0 : old[at + place]!));
  return { ...state, arrays: { ...state.arrays, weights } };
}

/** Before there was a choice all were scaled. */
export const loadRidge = ({ arrays, numbers }: PolicyState): Estimator =>
  createRidge(arrays['weights'] as Float32Array, numbers['isScaled'] !== 0);
export const ridgeLength = (numCandidates: number): number => numCandidates * WIDTH;
