import { RuvLLMError } from '../../../../../src/core/errors.ts';
import { integerOption, numberOption, resolveOptions } from '../../../../../src/core/options.ts';
import { createRandom } from '../../../../../src/core/random.ts';
import { clipNorm, createAdamState, stepAdam } from '../../../../../src/learning/lora-training/adam.ts';
import { bestOf, type UtilityWeights } from '../../../../../src/learning/router/candidates.ts';
import { checkExample, utilitiesOf } from '../../../../../src/learning/router/labels.ts';
import type { Candidate, RouteExample } from '../../../../../src/learning/router/types.ts';
import { segmentsOf } from '../bench-input.ts';
import { DEFAULT_SHAPE, initialParams, layoutOf, type NetworkLayout } from './layout.ts';
import { lossOf, sigmoid, type Targets } from './loss.ts';
import { createNetwork, type Network } from './network.ts';
import { type Mask, threshold } from './sparsity.ts';
import { targetsOf } from './targets-of.ts';

export interface FastGrnnOptions {
  /** Default 0.001. */
  readonly learningRate?: number;
  /** Default 32. */
  readonly batchSize?: number;
  /** Default 12. */
  readonly maxEpochs?: number;
  /** Epochs without a better validation loss before it stops. Default 3. */
  readonly patience?: number;
  /** Default 0.3. */
  readonly weightDecay?: number;
  /** Default 1. */
  readonly seed?: number;
}

export interface TrainContext {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  readonly train: readonly RouteExample[];
  readonly validation: readonly RouteExample[];
  /** Parameters to continue from; default: a fresh start. */
  readonly start?: { readonly params: Float32Array; readonly mask: Mask };
  readonly options?: FastGrnnOptions;
}

export interface TrainedNetwork {
  readonly layout: NetworkLayout;
  readonly params: Float32Array;
  readonly mask: Mask;
  readonly numEpochs: number;
  readonly validationLoss: number;
}

/** Longer gradients are shortened to this. */
const MAX_NORM = 5;
/** Epochs in which all of W may change, before the largest tenth is first chosen. */
const DENSE_EPOCHS = 1;
/** Later epochs that choose again at their end (iterative hard thresholding); then the choice is final. */
const THRESHOLD_EPOCHS = 2;

function resolveTrainOptions(options: FastGrnnOptions | undefined): Required<FastGrnnOptions> {
  return resolveOptions<Required<FastGrnnOptions>>('FastGRNN', options, {
    learningRate: numberOption(1e-3, 1e-7, 1),
    batchSize: integerOption(32, 1, 4096),
    maxEpochs: integerOption(12, 1, 1000),
    patience: integerOption(3, 1, 1000),
    weightDecay: numberOption(0.3, 0, 100),
    seed: integerOption(1, 0, 2 ** 32 - 1),
  });
}

/** Whether the network's choice is as good as the best known; NaN if it was not tried. */
export function isOwnChoiceRight(layout: NetworkLayout, outputs: Float64Array, utilities: Float64Array): number {
  const qualities = outputs.subarray(layout.qualityAt, layout.qualityAt + layout.numCandidates);
  const chosen = bestOf(qualities);
  if (Number.isNaN(utilities[chosen]!)) return NaN;
  return +(utilities[chosen]! >= Math.max(...utilities.filter((utility) => !Number.isNaN(utility))));
}

interface Prepared {
  readonly segments: readonly Float32Array[];
  readonly targets: Omit<Targets, 'confidence'>;
  readonly utilities: Float64Array;
}

function meanLoss(
  network: Network,
  params: Float32Array,
  examples: readonly Prepared[],
  scratch: Float64Array,
): number {
  let sum = 0;
  network.load(params);
  for (const { segments, targets } of examples) {
    const outputs = network.forward(segments);
    sum += lossOf(network.layout, outputs, { ...targets, confidence: NaN }, scratch);
  }
  return sum / Math.max(1, examples.length);
}

/** Trains on copies; never changes its inputs. */
export function trainFastGrnn(context: TrainContext): TrainedNetwork {
  const options = resolveTrainOptions(context.options);
  const { candidates, weights } = context;
  const layout = layoutOf({ ...DEFAULT_SHAPE, numCandidates: candidates.length });
  const prepare = (example: RouteExample): Prepared => {
    checkExample(example, candidates.length);
    return {
      segments: segmentsOf(example.input),
      targets: targetsOf(example, candidates, weights),
      utilities: utilitiesOf(example, candidates, weights),
    };
  };
  const examples = context.train.map(prepare);
  const validation = context.validation.map(prepare);
  if (examples.length === 0) throw new RuvLLMError('invalid_option', 'a router cannot be trained on 0 examples');
  const params =
    context.start?.params.slice() ?? initialParams(layout, options.seed, new Float32Array(layout.numParams));
  if (params.length !== layout.numParams)
    throw new RuvLLMError('invalid_option', `${params.length} parameters to start from, the network has ${layout.numParams}`); // prettier-ignore

  const gradient = new Float32Array(layout.numParams);
  const outputGradient = new Float64Array(layout.numOutputs);
  const adam = createAdamState(layout.numParams);
  const keep = 1 - options.learningRate * options.weightDecay;
  const random = createRandom(options.seed + 1);
  const order = Int32Array.from(examples, (_, i) => i);
  let mask = context.start?.mask ?? null;
  let network = createNetwork(layout, mask);
  let best: TrainedNetwork | null = null;
  const lastThreshold = DENSE_EPOCHS + THRESHOLD_EPOCHS;

  for (let epoch = 1; epoch <= Math.max(options.maxEpochs, context.start ? 1 : lastThreshold + 1); epoch++) {
    for (let i = order.length - 1; i > 0; i--) {
      const j = Math.floor(random.next() * (i + 1));
      [order[i], order[j]] = [order[j]!, order[i]!];
    }
    for (let from = 0; from < order.length; from += options.batchSize) {
      const batch = order.subarray(from, from + options.batchSize);
      gradient.fill(0);
      network.load(params);
      for (const index of batch) {
        const { segments, targets, utilities } = examples[index]!;
        const outputs = network.forward(segments);
        const confidence = isOwnChoiceRight(layout, outputs, utilities);
        lossOf(layout, outputs, { ...targets, confidence }, outputGradient);
        for (let o = 0; o < outputGradient.length; o++) outputGradient[o]! /= batch.length;
        network.backward(outputGradient);
      }
      network.collect(gradient);
      checkGradient(gradient);
      // Gains, biases and ζ, ν need not be small: weight decay applies only to matrices, apart from the gradient.
      scale(params, layout.wz, layout.biasZ, keep);
      scale(params, layout.heads, layout.headBias, keep);
      stepAdam(params, gradient, adam, options);
    }
    if (context.start === undefined && epoch >= DENSE_EPOCHS && epoch <= lastThreshold) {
      const newMask = threshold(params, layout);
      // Entries that were cut restart without momentum.
      for (let i = layout.wz; i < layout.az; i++) if (params[i] === 0) adam.first[i] = adam.second[i] = 0;
      if (epoch === lastThreshold) {
        mask = newMask;
        network = createNetwork(layout, mask);
      }
    }
    if (mask === null) continue;
    const validationLoss = meanLoss(network, params, validation.length > 0 ? validation : examples, outputGradient);
    if (best === null || validationLoss < best.validationLoss)
      best = { layout, params: params.slice(), mask, numEpochs: epoch, validationLoss };
    else if (epoch - best.numEpochs >= options.patience) break;
  }
  if (best === null || !Number.isFinite(best.validationLoss))
    throw new RuvLLMError('bad_gradient', `training ended with a validation loss of ${best?.validationLoss}; nothing was changed`); // prettier-ignore
  return best;
}

function scale(params: Float32Array, from: number, end: number, factor: number): void {
  for (let i = from; i < end; i++) params[i]! *= factor;
}

/** Shortens a gradient that is too long; throws before any change if it is not finite. */
function checkGradient(gradient: Float32Array): void {
  if (Number.isFinite(clipNorm(gradient, MAX_NORM))) return;
  const at = gradient.findIndex((value) => !Number.isFinite(value));
  const what = at < 0 ? 'the norm of the gradient is not finite' : `the gradient of parameter ${at} of ${gradient.length} is ${gradient[at]}`; // prettier-ignore
  throw new RuvLLMError('bad_gradient', `${what}; nothing was changed`, { data: { parameter: at } });
}

/** The confidence head's output before calibration. */
export const rawConfidence = (layout: NetworkLayout, outputs: Float64Array): number =>
  sigmoid(outputs[layout.confidenceAt]!);
