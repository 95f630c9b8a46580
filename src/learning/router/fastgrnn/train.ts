import { RuvLLMError } from '../../../core/errors.ts';
import { integerOption, numberOption, resolveOptions } from '../../../core/options.ts';
import { createRandom } from '../../../core/random.ts';
import { bestOf, type UtilityWeights } from '../candidates.ts';
import { checkExample, targetsOf, utilitiesOf } from '../labels.ts';
import type { Candidate, RouteExample } from '../types.ts';
import { createAdam } from './adam.ts';
import { DEFAULT_SHAPE, initialParams, layoutOf, type NetworkLayout } from './layout.ts';
import { lossOf, sigmoid, type Targets } from './loss.ts';
import { createNetwork, type Network } from './network.ts';
import { type Mask, threshold } from './sparsity.ts';

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
  /** Where to go on from; a fresh start without. */
  readonly start?: { readonly params: Float32Array; readonly mask: Mask };
  /** Adds the gradient of a penalty on the parameters, such as EWC's, to `out`. */
  readonly penaltyGradient?: (params: Float32Array, out: Float32Array) => void;
  readonly signal?: AbortSignal;
  readonly options?: FastGrnnOptions;
}

export interface TrainedNetwork {
  readonly layout: NetworkLayout;
  readonly params: Float32Array;
  readonly mask: Mask;
  readonly numEpochs: number;
  readonly validationLoss: number;
}

/** Epochs in which all of W may move, before the largest tenth is chosen for the first time. */
const DENSE_EPOCHS = 1;
/** Epochs after those in which the choice is made anew at the end of each (iterative hard thresholding); then it stands. */
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

/** Whether what the network would choose is as good as the best that is known; NaN where its choice was not tried. */
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
  for (const { segments, targets } of examples) {
    const outputs = network.forward(params, segments);
    sum += lossOf(network.layout, outputs, { ...targets, confidence: NaN }, scratch);
  }
  return sum / Math.max(1, examples.length);
}

/** Trains on copies; what was given is as it was, whatever happens. */
export function trainFastGrnn(context: TrainContext): TrainedNetwork {
  const options = resolveTrainOptions(context.options);
  const { candidates, weights } = context;
  const layout = layoutOf({ ...DEFAULT_SHAPE, numCandidates: candidates.length });
  const prepare = (example: RouteExample): Prepared => {
    checkExample(example, candidates.length);
    return {
      segments: example.input.segments,
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
  const isMatrix = (i: number): boolean =>
    (i >= layout.wz && i < layout.biasZ) || (i >= layout.heads && i < layout.headBias);
  const adam = createAdam(layout.numParams, { ...options, maxNorm: 5, isDecayed: isMatrix });
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
      context.signal?.throwIfAborted();
      const batch = order.subarray(from, from + options.batchSize);
      gradient.fill(0);
      for (const index of batch) {
        const { segments, targets, utilities } = examples[index]!;
        const outputs = network.forward(params, segments);
        const confidence = isOwnChoiceRight(layout, outputs, utilities);
        lossOf(layout, outputs, { ...targets, confidence }, outputGradient);
        for (let o = 0; o < outputGradient.length; o++) outputGradient[o]! /= batch.length;
        network.backward(params, outputGradient, gradient);
      }
      context.penaltyGradient?.(params, gradient);
      adam.step(params, gradient);
      // Decay and a penalty reach entries that have no gradient: what is cut stays cut.
      if (mask !== null && context.penaltyGradient !== undefined) clearOutside(params, layout, mask);
    }
    if (context.start === undefined && epoch >= DENSE_EPOCHS && epoch <= lastThreshold) {
      const kept = threshold(params, layout);
      adam.forget((i) => i >= layout.wz && i < layout.az && params[i] === 0);
      if (epoch === lastThreshold) {
        mask = kept;
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
    throw new RuvLLMError('invalid_option', `training came to a validation loss of ${best?.validationLoss}: nothing was changed`); // prettier-ignore
  return best;
}

function clearOutside(params: Float32Array, layout: NetworkLayout, mask: Mask): void {
  const size = layout.numHidden * layout.numInputs;
  for (const [at, kept] of [
    [layout.wz, mask.wz],
    [layout.wh, mask.wh],
  ] as const) {
    const values = Float32Array.from(kept, (i) => params[at + i]!);
    params.fill(0, at, at + size);
    kept.forEach((i, j) => (params[at + i] = values[j]!));
  }
}

/** How sure the confidence head is, before calibration. */
export const rawConfidence = (layout: NetworkLayout, outputs: Float64Array): number =>
  sigmoid(outputs[layout.confidenceAt]!);
