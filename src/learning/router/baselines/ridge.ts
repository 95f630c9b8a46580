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
  /** Whether the sentence vector takes the place of the embedding and of the states; by cosine. Default false. */
  readonly isByVector?: boolean;
  /** Features of the query block to use. Default: all features. */
  readonly only?: readonly number[];
  /** By candidate, the quality it gains with the length of the prompt, assumed until outcomes say otherwise. Default 0. */
  readonly lengthPrior?: Float64Array;
  /** Default `ridge`, `cosine ridge` or `vector ridge`. */
  readonly name?: string;
}

export const RIDGE_DEFAULTS: RidgeOptions = {
  ridges: [30, 300, 3000, 30_000],
  directions: [0, 8, 24, 48, 96],
  mayBeConstant: true,
  isScaled: true,
};
/** The place of the length's logarithm in the query block. */
const LENGTH = 1;
/** The length of the prompt alone. A ridge of a thousand requests, because subjects differ in length for other reasons. */
export const LENGTH_ONLY: RidgeOptions = {
  ridges: [1000],
  directions: [0],
  mayBeConstant: false,
  isScaled: true,
  only: [LENGTH],
  name: 'length',
};
/** About as long as the features of the query, which a penalty is for as well. */
const COSINE_SCALE = 5;
/** Quality that the dearest candidate gains over the cheapest with every standard deviation of the length. */
const LENGTH_GAIN = 0.02;
const NUM_FOLDS = 4;
const SEED = 5;
/** Of an error that is laid to the candidate as such, when learning from one outcome. */
const MEAN_SHARE = 0.05;
/** Of an error that one outcome takes away for a request just like it. */
const LEARNING_RATE = 0.3;

type Layout = Pick<RidgeOptions, 'isScaled' | 'isByVector' | 'only'>;

/** By rank of cost, the sum being 0; all 0 if all cost the same. Longer prompts are harder, and a dearer candidate is dearer for a reason. */
export function lengthPriorOf(costs: readonly number[]): Float64Array {
  const ranks = costs.map((cost) => costs.filter((other) => other < cost).length - costs.filter((other) => other > cost).length); // prettier-ignore
  return Float64Array.from(ranks, (rank) => (LENGTH_GAIN * rank) / (2 * Math.max(1, costs.length - 1)));
}

function vectorRowOf({ vector, query }: RouteInput): Float64Array {
  const row = new Float64Array(1 + vector!.length + NUM_QUERY_FEATURES);
  row[0] = 1;
  for (let i = 0; i < vector!.length; i++) row[1 + i] = COSINE_SCALE * vector![i]!;
  row.set(query, 1 + vector!.length);
  return row;
}

/** The place of the length in a row. */
const lengthPlace = ({ isScaled, isByVector }: Layout, width: number, size: number): number =>
  1 + LENGTH + (isByVector ? width - 1 - NUM_QUERY_FEATURES : isScaled ? 0 : size);

function rowOf(input: RouteInput, { isScaled, isByVector, only }: Layout): Float64Array {
  if (isByVector) return vectorRowOf(input);
  const features = input.features;
  const row = new Float64Array(WIDTH);
  const states = NUM_QUERY_FEATURES + input.embedding.length;
  const size = input.embedding.length;
  const others = isScaled ? 1 : 1 + size;
  row[0] = 1;
  if (only !== undefined) {
    for (const i of only) row[others + i] = features[i]!;
    return row;
  }
  row.set(features.subarray(0, NUM_QUERY_FEATURES), others);
  row.set(features.subarray(states), others + NUM_QUERY_FEATURES);
  if (isScaled) row.set(features.subarray(NUM_QUERY_FEATURES, states), 1 + NUM_FEATURES - size);
  else for (let i = 0; i < size; i++) row[1 + i] = COSINE_SCALE * input.embedding[i]!;
  return row;
}

/** How many of the first columns may be used, by what was asked for. */
function sizesOf({ directions, isScaled, isByVector }: RidgeOptions, numDirections: number, width: number): number[] {
  if (isByVector) return [width];
  const counts = directions.map((count) => Math.min(count, numDirections));
  if (isScaled) return counts.map((count) => WIDTH - numDirections + count);
  return [...counts.filter((count) => count > 0).map((count) => 1 + count), WIDTH];
}

interface Data {
  readonly rows: readonly Float64Array[];
  readonly targets: readonly Float64Array[];
  readonly weights: ArrayLike<number>;
  readonly folds: ArrayLike<number>;
  readonly numFolds: number;
}

/**
 * Chooses the number of columns and the ridge by the error on held-out folds of groups: once for the first targets together and
 * once for each of the last `numApart`. f64[numTargets × width]
 */
function fitHeldOut(data: Data, sizes: readonly number[], options: RidgeOptions, numApart = 0): Float64Array {
  const { rows, targets, weights, folds, numFolds } = data;
  const [width, numTargets] = [rows[0]!.length, targets[0]!.length];
  // Most states and many directions are zero in all requests, and the time of a fit grows with the cube of the columns.
  const used = Array.from({ length: width }, (_, i) => i).filter((i) => rows.some((row) => row[i] !== 0));
  const usedRows = rows.map((row) => Float64Array.from(used, (i) => row[i]!));
  const equations = sumEquations(usedRows, targets, weights, folds, numFolds);
  const usedSizes = sizes.map((size) => used.filter((i) => i < size).length);
  const fitted = fitUsed(equations, [...new Set(usedSizes)], options, numApart);
  const expanded = new Float64Array(numTargets * width);
  fitted.forEach((value, at) => {
    expanded[Math.floor(at / used.length) * width + used[at % used.length]!] = value;
  });
  return expanded;
}

function fitUsed(
  equations: NormalEquations,
  sizes: readonly number[],
  options: RidgeOptions,
  numApart: number,
): Float64Array {
  const { width, numTargets, grams, rights } = equations;
  const choices = [
    ...(options.mayBeConstant ? [{ size: 1, ridge: 1 }] : []),
    ...options.ridges.flatMap((ridge) => sizes.map((size) => ({ size, ridge }))),
  ];
  type Choice = (typeof choices)[number];
  /** By choice, the least squares on all folds but one; on all for −1. */
  const solve = (without: number, asked: readonly Choice[]): Float64Array[] => {
    const [gram, right] = [leaveOut(grams, without), leaveOut(rights, without)];
    const largest = new Map<number, number>();
    for (const { size, ridge } of asked) largest.set(ridge, Math.max(size, largest.get(ridge) ?? 0));
    const factors = new Map(Array.from(largest, ([ridge, size]) => [ridge, factorRidge(gram, width, ridge, size)]));
    return asked.map(({ size, ridge }) => solveRidge(factors.get(ridge)!, right, width, size));
  };
  const numTogether = numTargets - numApart;
  const errors = choices.map(() => new Float64Array(numApart + 1));
  // One group cannot be left out: then the last choice, which holds back most.
  if (grams.length > 1 && choices.length > 1)
    grams.forEach((_, fold) =>
      solve(fold, choices).forEach((solved, i) =>
        squaredErrors(equations, fold, solved).forEach((error, t) => {
          errors[i]![Math.max(0, t - numTogether + 1)]! += error;
        }),
      ),
    );
  const chosen = Array.from({ length: numApart + 1 }, (_, part): Choice => {
    const values = errors.map((error) => error[part]!);
    return choices[grams.length > 1 ? values.indexOf(Math.min(...values)) : choices.length - 1]!;
  });
  const solutions = solve(-1, chosen);
  const fitted = new Float64Array(numTargets * width);
  for (let t = 0; t < numTargets; t++)
    fitted.set(solutions[Math.max(0, t - numTogether + 1)]!.subarray(t * width, (t + 1) * width), t * width);
  return fitted;
}

const nameOf = ({ isScaled, isByVector }: Layout): string =>
  isByVector ? 'vector ridge' : isScaled ? 'ridge' : 'cosine ridge';

/** `weights`: f32[numCandidates × width] */
function createRidge(weights: Float32Array, numCandidates: number, layout: Layout, name = nameOf(layout)): Estimator {
  const width = weights.length / numCandidates;
  const predict = (candidate: number, row: Float64Array): number => {
    let sum = 0;
    for (let i = 0, at = candidate * width; i < width; i++, at++) sum += weights[at]! * row[i]!;
    return sum;
  };
  return {
    name,
    estimate(input) {
      const row = rowOf(input, layout);
      const qualities = Float64Array.from({ length: numCandidates }, (_, i) => predict(i, row));
      return { qualities, confidence: NaN, why: { kind: 'best', detail: 'least squares' } };
    },
    update({ input, candidate, quality, propensity }) {
      const row = rowOf(input, layout);
      const error = quality - predict(candidate, row);
      const share = 1 - (1 - LEARNING_RATE) ** importanceOf(propensity);
      const at = candidate * width;
      let length = 0;
      for (let i = 1; i < width; i++) length += row[i]! ** 2;
      weights[at]! += MEAN_SHARE * share * error;
      const step = ((1 - MEAN_SHARE) * share * error) / Math.max(1, length);
      for (let i = 1; i < width; i++) weights[at + i]! += step * row[i]!;
    },
    save: () => ({
      kind: 'ridge',
      numbers: { isScaled: +layout.isScaled, isByVector: +(layout.isByVector ?? false), numCandidates },
      arrays: { weights },
      texts: { name: [name] },
    }),
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
  const rows = examples.map(({ input }) => rowOf(input, options));
  const width = rows[0]?.length ?? WIDTH;
  const weights = new Float32Array(numCandidates * width);
  const { isScaled, isByVector = false, name } = options;
  const create = (): Estimator => createRidge(weights, numCandidates, { isScaled, isByVector }, name);
  if (examples.length === 0) {
    for (let i = 0; i < numCandidates; i++) weights[i * width] = 0.5;
    return create();
  }
  const size = examples[0]!.input.embedding.length;
  const sizes = sizesOf(options, size, width);
  const numFolds = Math.min(NUM_FOLDS, new Set(examples.map(({ group }) => group)).size);
  const folds = foldsOf(examples, numFolds, SEED);
  // Fitted is what the outcomes say beyond the prior.
  const { lengthPrior = new Float64Array(numCandidates) } = options;
  const length = lengthPlace(options, width, size);
  const priorOf = (candidate: number, r: number): number => lengthPrior[candidate]! * rows[r]![length]!;
  const addPrior = (): void => lengthPrior.forEach((prior, i) => (weights[i * width + length]! += prior));
  const isWhole = examples.every(({ outcomes, propensities }) => propensities === undefined && !outcomes.some(Number.isNaN)); // prettier-ignore
  if (isWhole) {
    // The last target is the level.
    const targets = examples.map(({ outcomes }, r) => {
      const level = outcomes.reduce((sum, value) => sum + value, 0) / numCandidates;
      return Float64Array.from({ length: numCandidates + 1 }, (_, i) => (i < numCandidates ? outcomes[i]! - level - priorOf(i, r) : level)); // prettier-ignore
    });
    const once = new Float64Array(rows.length).fill(1);
    const fitted = fitHeldOut({ rows, targets, weights: once, folds, numFolds }, sizes, options, 1);
    for (let i = 0; i < weights.length; i++) weights[i] = fitted[i]! + fitted[weights.length + (i % width)]!;
    addPrior();
    return create();
  }
  for (let candidate = 0; candidate < numCandidates; candidate++) {
    const known = examples.flatMap(({ outcomes }, r) => (Number.isNaN(outcomes[candidate]!) ? [] : [r]));
    if (known.length === 0) {
      weights[candidate * width] = 0.5;
      continue;
    }
    const targets = known.map((r) => Float64Array.of(examples[r]!.outcomes[candidate]! - priorOf(candidate, r)));
    const importances = known.map((r) => importanceOf(examples[r]!.propensities?.[candidate] ?? 1));
    const data = { rows: known.map((r) => rows[r]!), targets, weights: importances, folds: known.map((r) => folds[r]!), numFolds }; // prettier-ignore
    weights.set(fitHeldOut(data, sizes, options), candidate * width);
  }
  addPrior();
  return create();
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

/** Before there was a choice all were scaled, and none had a vector. */
export function loadRidge({ arrays, numbers, texts }: PolicyState): Estimator {
  const weights = arrays['weights'] as Float32Array;
  const { numCandidates = weights.length / WIDTH } = numbers;
  const layout = { isScaled: numbers['isScaled'] !== 0, isByVector: numbers['isByVector'] === 1 };
  return createRidge(weights, numCandidates, layout, texts?.['name']?.[0]);
}

/** `vector` is the width of the sentence vectors. */
export const ridgeLength = ({ numbers }: PolicyState, numCandidates: number, vector: number): number =>
  numCandidates * (numbers['isByVector'] === 1 ? 1 + vector + NUM_QUERY_FEATURES : WIDTH);
