import { RuvLLMError } from '../../core/errors.ts';
import { instanceOption, integerOption, numberOption, optional, resolveOptions } from '../../core/options.ts';
import { createRandom } from '../../core/random.ts';
import { type AdamState, clipNorm, createAdamState, stepAdam } from './adam.ts';
import { initialParameters } from './parameter-layout.ts';
import { checkState, type TrainingState } from './training-state.ts';
import type { Trainable } from './types.ts';

/** Penalty on the parameters, such as EWC. */
export interface Regularizer {
  /** Adds the slope of the penalty at `parameters` to `gradient`. */
  addPenaltyGradient(parameters: Float32Array, gradient: Float32Array): void;
}

export interface TrainLoraOptions {
  /** Initial parameters; default: random A, zero B. */
  readonly parameters?: Float32Array | null;
  /** Continues a stopped run; examples, seed and batch size must be the same. */
  readonly state?: TrainingState | null;
  /** Default 3. */
  readonly numEpochs?: number;
  /** Examples per step; default 4. */
  readonly batchSize?: number;
  /** Default 1e-3. */
  readonly learningRate?: number;
  /** Share of the learning rate by number of finished steps; default 1 for all. */
  readonly schedule?: ((numSteps: number) => number) | null;
  /** Largest gradient norm of a step, with the penalty; default 1. */
  readonly maxGradientNorm?: number;
  /** Seed of the initial parameters and of the order of examples; default 1. */
  readonly seed?: number;
  readonly regularizer?: Regularizer | null;
  /** Moves parameters back into an allowed range, before the first step and after each one; default none. */
  readonly constrain?: ((parameters: Float32Array) => void) | null;
  /** Default: all steps of the epochs. */
  readonly maxSteps?: number | null;
  /** No example starts after this time; default none. */
  readonly timeLimitMs?: number | null;
  readonly signal?: AbortSignal | null;
  /** Clock of the time limit in ms; default `performance.now`. */
  readonly now?: (() => number) | null;
  readonly onStep?: ((report: StepReport) => void) | null;
}

export interface StepReport {
  readonly step: number;
  /** Weighted mean over the batch, without the penalty. */
  readonly loss: number;
  /** Before clipping. */
  readonly gradientNorm: number;
}

export interface TrainingResult {
  readonly parameters: Float32Array;
  /** For `options.state`, to continue; a copy. */
  readonly state: TrainingState;
  readonly stoppedBy: 'end' | 'steps' | 'time' | 'signal';
  /** One for each step of this call. */
  readonly losses: readonly number[];
}

const MAX_EXAMPLES = 2 ** 20;

/**
 * Trains low-rank factors on examples in an order that depends on the seed alone. A gradient that is not finite throws `bad_gradient`. The
 * input is never changed.
 */
export async function trainLora<Item>(
  model: Trainable<Item>,
  examples: readonly Item[],
  given: TrainLoraOptions = {},
): Promise<TrainingResult> {
  const options = resolveTrainOptions(given);
  const { seed, batchSize, numEpochs, timeLimitMs, signal, maxSteps } = options;
  checkExamples(model, examples);
  const { numParameters } = model.layout;
  const fixed = { seed, batchSize, numExamples: examples.length, numParameters };
  if (options.state !== null) checkState(options.state, fixed);
  const start = options.state?.parameters ?? options.parameters ?? initialParameters(model.layout, seed);
  if (start.length !== numParameters) {
    throw new RuvLLMError('invalid_option', `parameters of ${start.length} values, the layout has ${numParameters}`);
  }
  const parameters = start.slice();
  options.constrain?.(parameters);
  const adam: AdamState =
    options.state === null
      ? createAdamState(numParameters)
      : { first: options.state.first.slice(), second: options.state.second.slice(), numSteps: options.state.numSteps };
  const stepsPerEpoch = Math.ceil(examples.length / batchSize);
  const endStep = Math.min(numEpochs * stepsPerEpoch, maxSteps === null ? Infinity : adam.numSteps + maxSteps);
  const now = options.now ?? (() => performance.now());
  const deadline = timeLimitMs === null ? Infinity : now() + timeLimitMs;
  const losses: number[] = [];
  let stoppedBy: TrainingResult['stoppedBy'] = endStep < numEpochs * stepsPerEpoch ? 'steps' : 'end';
  const mustStop = (): boolean => {
    if (signal?.aborted) stoppedBy = 'signal';
    else if (now() >= deadline) stoppedBy = 'time';
    else return false;
    return true;
  };

  while (adam.numSteps < endStep) {
    const epoch = Math.floor(adam.numSteps / stepsPerEpoch);
    const first = (adam.numSteps % stepsPerEpoch) * batchSize;
    const batch = shuffled(examples.length, seed, epoch).slice(first, first + batchSize);
    const done = await addBatch(
      model,
      parameters,
      batch.map((i) => examples[i]!),
      mustStop,
    );
    if (done === null) break;
    options.regularizer?.addPenaltyGradient(parameters, done.gradient);
    const gradientNorm = clipNorm(done.gradient, options.maxGradientNorm);
    if (!Number.isFinite(gradientNorm)) {
      throw new RuvLLMError('bad_gradient', `the gradient of step ${adam.numSteps} has the norm ${gradientNorm}`);
    }
    const share = options.schedule?.(adam.numSteps) ?? 1;
    stepAdam(parameters, done.gradient, adam, { learningRate: options.learningRate * share });
    options.constrain?.(parameters);
    losses.push(done.loss);
    options.onStep?.({ step: adam.numSteps, loss: done.loss, gradientNorm });
    // Kernels may block the thread: without a pause no message, and so no abort, would arrive.
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  const { first, second, numSteps } = adam;
  const state: TrainingState = { ...fixed, parameters: parameters.slice(), first, second, numSteps };
  return { parameters, state, stoppedBy, losses };
}

/** The mean gradient of a batch; null if it had to stop, because half a batch would be another step. */
async function addBatch<Item>(
  model: Trainable<Item>,
  parameters: Float32Array,
  batch: readonly Item[],
  mustStop: () => boolean,
): Promise<{ gradient: Float32Array; loss: number } | null> {
  const gradient = new Float32Array(parameters.length);
  let loss = 0;
  if (mustStop()) return null;
  await model.prepareBatch?.(parameters, batch);
  for (const example of batch) {
    if (mustStop()) return null;
    const weight = Math.abs((example as { readonly weight?: number }).weight ?? 1);
    if (weight > 0) loss += (weight * (await model.addGradient(parameters, example, gradient)).loss) / batch.length;
  }
  for (let i = 0; i < gradient.length; i++) gradient[i]! /= batch.length;
  return { gradient, loss };
}

/** The order of an epoch: Fisher–Yates with its own seed, so that a run can continue from any step. */
function shuffled(length: number, seed: number, epoch: number): number[] {
  const order = Array.from({ length }, (_, i) => i);
  const random = createRandom(seed * 65537 + epoch);
  for (let i = length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}

function checkExamples<Item>(model: Trainable<Item>, examples: readonly Item[]): void {
  if (examples.length < 1 || examples.length > MAX_EXAMPLES) {
    throw new RuvLLMError('invalid_option', `${examples.length} examples: from 1 to ${MAX_EXAMPLES}`);
  }
  for (const example of examples) model.check(example);
}

function resolveTrainOptions(given: TrainLoraOptions): Readonly<Required<TrainLoraOptions>> {
  const isVector = (value: unknown): value is Float32Array => value instanceof Float32Array;
  const isObject = <T extends object>(value: unknown): value is T => typeof value === 'object' && value !== null;
  const isFunction = <T extends (...given: never[]) => unknown>(value: unknown): value is T =>
    typeof value === 'function';
  return resolveOptions<Required<TrainLoraOptions>>('trainLora', given, {
    parameters: optional(instanceOption('a Float32Array', isVector)),
    state: optional(instanceOption('the state of a run', isObject<TrainingState>)),
    numEpochs: integerOption(3, 1, 1e6),
    batchSize: integerOption(4, 1, 4096),
    learningRate: numberOption(1e-3, 0, 1),
    schedule: optional(instanceOption('a function', isFunction<(numSteps: number) => number>)),
    maxGradientNorm: numberOption(1, 1e-12, 1e12),
    seed: integerOption(1, 0, 2 ** 32),
    regularizer: optional(instanceOption('a regularizer', isObject<Regularizer>)),
    constrain: optional(instanceOption('a function', isFunction<(parameters: Float32Array) => void>)),
    maxSteps: optional(integerOption(1, 0, 2 ** 31)),
    timeLimitMs: optional(numberOption(0, 0, 2 ** 31)),
    signal: optional(instanceOption('an AbortSignal', (value): value is AbortSignal => value instanceof AbortSignal)),
    now: optional(instanceOption('a function', isFunction<() => number>)),
    onStep: optional(instanceOption('a function', isFunction<(report: StepReport) => void>)),
  });
}
