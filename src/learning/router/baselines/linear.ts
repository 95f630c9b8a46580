import { createRandom } from '../../../core/random.ts';
import type { Estimator } from '../estimator.ts';
import { dotSparse } from '../features/hashed-terms.ts';
import { importanceOf } from '../labels.ts';
import { NUM_QUERY_FEATURES, type PolicyState, type RouteExample, type RouteInput } from '../types.ts';
import { meanOutcomes } from './constant.ts';

export interface LinearOptions {
  /** Scale of the query block. */
  readonly queryScale: number;
  readonly termScale: number;
  /** L2 penalty per example. */
  readonly ridge: number;
  readonly numEpochs: number;
  /** Per feedback. */
  readonly learningRate: number;
  readonly seed: number;
}

export const LINEAR_DEFAULTS: LinearOptions = {
  queryScale: 0.03,
  termScale: 0.3,
  ridge: 2e-4,
  numEpochs: 12,
  learningRate: 0.5,
  seed: 1,
};

/** Share of an error attributed to the candidate's mean: it moves a router to a candidate and away again. */
const MEAN_SHARE = 0.05;

interface Weights {
  /** f32[numCandidates × (32 + numBuckets)] */
  readonly values: Float32Array;
  readonly means: Float32Array;
  readonly width: number;
}

function predict(
  { values, means, width }: Weights,
  candidate: number,
  input: RouteInput,
  options: LinearOptions,
): number {
  const at = candidate * width;
  let sum = 0;
  for (let i = 0; i < NUM_QUERY_FEATURES; i++) sum += values[at + i]! * input.query[i]!;
  return (
    means[candidate]! +
    options.queryScale * sum +
    options.termScale * dotSparse(input.terms, values, at + NUM_QUERY_FEATURES)
  );
}

function addInput(
  { values, width }: Weights,
  candidate: number,
  input: RouteInput,
  step: number,
  options: LinearOptions,
): void {
  // prettier-ignore
  const at = candidate * width;
  for (let i = 0; i < NUM_QUERY_FEATURES; i++) values[at + i]! += step * options.queryScale * input.query[i]!;
  const terms = at + NUM_QUERY_FEATURES;
  for (let i = 0; i < input.terms.indices.length; i++)
    values[terms + input.terms.indices[i]!]! += step * options.termScale * input.terms.values[i]!;
}

function squaredLength(input: RouteInput, options: LinearOptions): number {
  let query = 0;
  for (const value of input.query) query += value * value;
  let terms = 0;
  for (const value of input.terms.values) terms += value * value;
  return options.queryScale ** 2 * query + options.termScale ** 2 * terms;
}

/** Ridge regression of each candidate's outcome, by dual coordinate ascent (Shalev-Shwartz and Zhang 2013): no rate to tune. */
function fit(weights: Weights, candidate: number, examples: readonly RouteExample[], options: LinearOptions): void {
  const known = examples.filter(({ outcomes }) => !Number.isNaN(outcomes[candidate]!));
  const lengths = known.map(({ input }) => squaredLength(input, options));
  const alphas = new Float64Array(known.length);
  const scale = 1 / (options.ridge * Math.max(1, known.length));
  const random = createRandom(options.seed);
  for (let epoch = 0; epoch < options.numEpochs; epoch++) {
    for (let step = 0; step < known.length; step++) {
      const i = Math.floor(random.next() * known.length);
      const { input, outcomes, propensities } = known[i]!;
      const slack = 1 / importanceOf(propensities?.[candidate] ?? 1);
      const error = outcomes[candidate]! - predict(weights, candidate, input, options) - slack * alphas[i]!;
      const change = error / (slack + lengths[i]! * scale);
      alphas[i]! += change;
      addInput(weights, candidate, input, change * scale, options);
    }
  }
}

function createLinear(weights: Weights, options: LinearOptions): Estimator {
  const numCandidates = weights.means.length;
  return {
    name: 'linear',
    estimate: (input) => ({
      qualities: Float64Array.from({ length: numCandidates }, (_, i) => predict(weights, i, input, options)),
      confidence: NaN,
      why: { kind: 'best', detail: `${input.terms.indices.length} known terms` },
    }),
    update({ input, candidate, quality, propensity }) {
      const error = quality - predict(weights, candidate, input, options);
      const length = squaredLength(input, options);
      // Removes a share of the error regardless of the input's length; importance keeps the share below 1, so no step overshoots.
      const share = 1 - (1 - options.learningRate) ** importanceOf(propensity);
      addInput(weights, candidate, input, (share * error) / Math.max(1e-9, length), options);
      weights.means[candidate]! += MEAN_SHARE * share * error;
    },
    save: () => ({
      kind: 'linear',
      numbers: { ...options, width: weights.width },
      arrays: { values: weights.values, means: weights.means },
    }),
  };
}

export function trainLinear(
  examples: readonly RouteExample[],
  numCandidates: number,
  numBuckets: number,
  options: LinearOptions = LINEAR_DEFAULTS,
): Estimator {
  const width = NUM_QUERY_FEATURES + numBuckets;
  const weights = {
    values: new Float32Array(numCandidates * width),
    means: meanOutcomes(examples, numCandidates),
    width,
  };
  for (let i = 0; i < numCandidates; i++) fit(weights, i, examples, options);
  return createLinear(weights, options);
}

export function loadLinear({ numbers, arrays }: PolicyState): Estimator {
  const { width, ...options } = numbers;
  const weights = { values: arrays['values'] as Float32Array, means: arrays['means'] as Float32Array, width: width! };
  return createLinear(weights, options as unknown as LinearOptions);
}
