import { RuvLLMError } from '../../../../src/core/errors.ts';
import { integerOption, numberOption, resolveOptions } from '../../../../src/core/options.ts';
import { createRandom } from '../../../../src/core/random.ts';
import { clipNorm, createAdamState, stepAdam } from '../../../../src/learning/lora-training/adam.ts';
import type { Estimator } from '../../../../src/learning/router/estimator.ts';
import { sigmoid } from './fastgrnn/loss.ts';
import { importanceOf } from '../../../../src/learning/router/labels.ts';
import { NUM_FEATURES, type RouteExample } from '../../../../src/learning/router/types.ts';

export interface MlpOptions {
  /** Default 0.001. */
  readonly learningRate?: number;
  /** Default 20. */
  readonly maxEpochs?: number;
  /** Epochs without a better validation loss before it stops. Default 3. */
  readonly patience?: number;
  /** Default 0.3. */
  readonly weightDecay?: number;
  /** Default 1. */
  readonly seed?: number;
}

const NUM_HIDDEN = 32;
const BATCH_SIZE = 32;
const MAX_NORM = 5;
/** Width of W1: the features and a bias for each hidden unit. */
const WIDTH = NUM_FEATURES + 1;
const HEADS = NUM_HIDDEN * WIDTH;
const HEAD_WIDTH = NUM_HIDDEN + 1;

export const mlpLength = (numCandidates: number): number => HEADS + numCandidates * HEAD_WIDTH;

/** Hidden units at once, a divisor of their number: each feature is read once for four. */
const AT_ONCE = 4;

/** tanh(W1 x + b1), then a quality for each candidate; `hidden` and `logits` are filled. */
function forward(params: Float32Array, input: Float32Array, hidden: Float64Array, logits: Float64Array): void {
  for (let i = 0; i < NUM_HIDDEN; i += AT_ONCE) {
    const [a0, a1, a2, a3] = [i * WIDTH, (i + 1) * WIDTH, (i + 2) * WIDTH, (i + 3) * WIDTH];
    let [s0, s1] = [params[a0 + NUM_FEATURES]!, params[a1 + NUM_FEATURES]!];
    let [s2, s3] = [params[a2 + NUM_FEATURES]!, params[a3 + NUM_FEATURES]!];
    for (let j = 0; j < NUM_FEATURES; j++) {
      const x = input[j]!;
      s0 += params[a0 + j]! * x;
      s1 += params[a1 + j]! * x;
      s2 += params[a2 + j]! * x;
      s3 += params[a3 + j]! * x;
    }
    hidden[i] = Math.tanh(s0);
    hidden[i + 1] = Math.tanh(s1);
    hidden[i + 2] = Math.tanh(s2);
    hidden[i + 3] = Math.tanh(s3);
  }
  for (let c = 0; c < logits.length; c++) {
    const at = HEADS + c * HEAD_WIDTH;
    let sum = params[at + NUM_HIDDEN]!;
    for (let i = 0; i < NUM_HIDDEN; i++) sum += params[at + i]! * hidden[i]!;
    logits[c] = sum;
  }
}

/** Adds the derivatives of one example, from the derivative by each logit. */
function backward(
  params: Float32Array,
  input: Float32Array,
  hidden: Float64Array,
  owed: Float64Array,
  gradient: Float32Array,
): void {
  for (let i = 0; i < NUM_HIDDEN; i++) {
    let derivative = 0;
    for (let c = 0; c < owed.length; c++) {
      const at = HEADS + c * HEAD_WIDTH + i;
      derivative += owed[c]! * params[at]!;
      gradient[at]! += owed[c]! * hidden[i]!;
    }
    derivative *= 1 - hidden[i]! * hidden[i]!;
    const at = i * WIDTH;
    for (let j = 0; j < NUM_FEATURES; j++) gradient[at + j]! += derivative * input[j]!;
    gradient[at + NUM_FEATURES]! += derivative;
  }
  for (let c = 0; c < owed.length; c++) gradient[HEADS + c * HEAD_WIDTH + NUM_HIDDEN]! += owed[c]!;
}

/** Cross-entropy of the known outcomes, weighted by 1 / propensity; `owed` is its derivative by each logit. */
function lossOf(logits: Float64Array, { outcomes, propensities }: RouteExample, owed: Float64Array): number {
  let loss = 0;
  for (let c = 0; c < logits.length; c++) {
    const outcome = outcomes[c]!;
    const weight = Number.isNaN(outcome) ? 0 : importanceOf(propensities?.[c] ?? 1);
    const logit = logits[c]!;
    owed[c] = weight === 0 ? 0 : weight * (sigmoid(logit) - outcome);
    if (weight > 0) loss += weight * (Math.max(logit, 0) + Math.log1p(Math.exp(-Math.abs(logit))) - outcome * logit);
  }
  return loss;
}

function createMlp(params: Float32Array): Estimator {
  const numCandidates = (params.length - HEADS) / HEAD_WIDTH;
  const hidden = new Float64Array(NUM_HIDDEN);
  const logits = new Float64Array(numCandidates);
  return {
    name: 'MLP',
    estimate({ features }) {
      forward(params, features, hidden, logits);
      return {
        qualities: logits.map(sigmoid),
        confidence: NaN,
        why: { kind: 'best', detail: `a network of ${NUM_HIDDEN} hidden units` },
      };
    },
    update() {},
    save: () => ({ kind: 'MLP', numbers: {}, arrays: { params } }),
  };
}

/** Scratch memory for many examples; `lossOf` stores what `backward` needs. */
function createPass(numCandidates: number) {
  const hidden = new Float64Array(NUM_HIDDEN);
  const logits = new Float64Array(numCandidates);
  const owed = new Float64Array(numCandidates);
  return {
    lossOf(params: Float32Array, example: RouteExample): number {
      forward(params, example.input.features, hidden, logits);
      return lossOf(logits, example, owed);
    },
    backward(params: Float32Array, example: RouteExample, gradient: Float32Array): void {
      backward(params, example.input.features, hidden, owed, gradient);
    },
  };
}

/** Gradient and loss of one example at given parameters, for the tests. */
export function mlpGradient(params: Float32Array, example: RouteExample, gradient: Float32Array): number {
  const pass = createPass(example.outcomes.length);
  const loss = pass.lossOf(params, example);
  pass.backward(params, example, gradient);
  return loss;
}

/** One hidden layer over the features of the whole text: the baseline of a recurrent network. It learns only in batches. */
export function trainMlp(
  train: readonly RouteExample[],
  validation: readonly RouteExample[],
  numCandidates: number,
  input?: MlpOptions,
): Estimator {
  const options = resolveOptions<Required<MlpOptions>>('MLP', input, {
    learningRate: numberOption(1e-3, 1e-7, 1),
    maxEpochs: integerOption(20, 1, 1000),
    patience: integerOption(3, 1, 1000),
    weightDecay: numberOption(0.3, 0, 100),
    seed: integerOption(1, 0, 2 ** 32 - 1),
  });
  const random = createRandom(options.seed);
  const params = new Float32Array(mlpLength(numCandidates));
  for (let i = 0; i < HEADS; i++) params[i] = (2 * random.next() - 1) * Math.sqrt(1 / NUM_FEATURES);
  if (train.length === 0) return createMlp(params);
  const gradient = new Float32Array(params.length);
  const pass = createPass(numCandidates);
  const judged = validation.length > 0 ? validation : train;
  const adam = createAdamState(params.length);
  const keep = 1 - options.learningRate * options.weightDecay;
  const order = Int32Array.from(train, (_, i) => i);
  let best = { params: params.slice(), loss: Infinity, epoch: 0 };
  for (let epoch = 1; epoch <= options.maxEpochs && epoch - best.epoch <= options.patience; epoch++) {
    for (let i = order.length - 1; i > 0; i--) {
      const j = Math.floor(random.next() * (i + 1));
      [order[i], order[j]] = [order[j]!, order[i]!];
    }
    for (let from = 0; from < order.length; from += BATCH_SIZE) {
      const batch = order.subarray(from, from + BATCH_SIZE);
      gradient.fill(0);
      for (const index of batch) {
        pass.lossOf(params, train[index]!);
        pass.backward(params, train[index]!, gradient);
      }
      for (let i = 0; i < gradient.length; i++) gradient[i]! /= batch.length;
      const norm = clipNorm(gradient, MAX_NORM);
      if (!Number.isFinite(norm)) throw new RuvLLMError('bad_gradient', `the gradient of ${batch.length} requests in epoch ${epoch} has the norm ${norm}`); // prettier-ignore
      for (let i = 0; i < params.length; i++) params[i]! *= keep;
      stepAdam(params, gradient, adam, options);
    }
    const loss = judged.reduce((sum, one) => sum + pass.lossOf(params, one), 0) / judged.length;
    if (loss < best.loss) best = { params: params.slice(), loss, epoch };
  }
  return createMlp(best.params);
}
