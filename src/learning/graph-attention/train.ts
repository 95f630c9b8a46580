import { RuvLLMError } from '../../core/errors.ts';
import { integerOption, numberOption, resolveOptions } from '../../core/options.ts';
import { createRandom, type Random } from '../../core/random.ts';
import { clipNorm, createAdamState, stepAdam } from '../lora-training/adam.ts';
import { attend } from './attend.ts';
import { attendBackward } from './attend-backward.ts';
import { isInformative, listLoss } from './list-loss.ts';
import { queryDirections } from './parameters.ts';
import { readRankList, type RankList } from './rank-list.ts';
import { type AttentionRoom, createRoomKeeper } from './rank-room.ts';
import { checkRerankerState } from './reranker.ts';
import type { RankExample, RerankerState } from './types.ts';

export interface RerankTrainingOptions {
  /** Seed of the order of examples. Default 1. */
  readonly seed?: number;
  /** Default 0.01. */
  readonly learningRate?: number;
  /** Default 60. */
  readonly maxEpochs?: number;
  /** Epochs without a better validation loss before it stops. Default 6. */
  readonly patience?: number;
  /** Examples of one step. Default 8. */
  readonly batchSize?: number;
  /** Pull towards the initial parameters, as a share of a step. Default 0.01. */
  readonly pull?: number;
}

export interface RerankTrainingReport {
  readonly state: RerankerState;
  readonly numExamples: number;
  readonly numValidation: number;
  /** Lists in which all or no candidates were used. */
  readonly numSkipped: number;
  readonly numEpochs: number;
  /** 0: no epoch was better than the start. */
  readonly bestEpoch: number;
  readonly lossBefore: number;
  readonly lossAfter: number;
}

interface TrainingList {
  readonly list: RankList;
  readonly used: RankExample['used'];
}

const MAX_EXAMPLES = 100_000;
const MAX_NORM = 1;

/** Returns the loss of one list and adds its gradient. */
export function listGradient(
  parameters: Float32Array,
  { list, used }: TrainingList,
  gradient: Float32Array,
  room?: AttentionRoom,
): number {
  const attention = attend(parameters, list, room);
  const { loss, slopes } = listLoss(attention.scores.subarray(0, list.count), used);
  attendBackward(parameters, list, attention, slopes, gradient);
  return loss;
}

/** Trains on `examples` and returns the parameters that were best on `validation`; `start` is not changed. */
export function trainReranker(
  start: RerankerState,
  examples: readonly RankExample[],
  validation: readonly RankExample[],
  given?: RerankTrainingOptions,
): RerankTrainingReport {
  const steps = trainingSteps(start, examples, validation, given);
  for (;;) {
    const { done, value } = steps.next(false);
    if (done) return value;
  }
}

/** The same, batch by batch; when it is told to stop, it returns the best parameters so far. */
export function* trainingSteps(
  start: RerankerState,
  examples: readonly RankExample[],
  validation: readonly RankExample[],
  given?: RerankTrainingOptions,
): Generator<undefined, RerankTrainingReport, boolean> {
  const options = resolveOptions<Required<RerankTrainingOptions>>('re-ranking training', given, {
    seed: integerOption(1, 0, Number.MAX_SAFE_INTEGER),
    learningRate: numberOption(0.01, 1e-6, 1),
    maxEpochs: integerOption(60, 1, 10_000),
    patience: integerOption(6, 1, 10_000),
    batchSize: integerOption(8, 1, 4096),
    pull: numberOption(0.01, 0, 1),
  });
  const { dim, seed, parameters: before } = checkRerankerState(start);
  const directions = queryDirections(seed, dim);
  const lists = readLists(examples, directions);
  const judged = readLists(validation, directions);
  if (lists.length === 0 || judged.length === 0) {
    throw new RuvLLMError(
      'invalid_option',
      `${lists.length} examples and ${judged.length} to validate have both used and unused candidates; one of each is needed`,
    );
  }
  const parameters = before.slice();
  const adam = createAdamState(parameters.length);
  const gradient = new Float32Array(parameters.length);
  const random = createRandom(options.seed);
  const roomFor = createRoomKeeper(dim);
  const lossBefore = meanLoss(parameters, judged, roomFor);
  let best = { loss: lossBefore, epoch: 0, parameters: before.slice() };
  let epoch = 0;
  let isOver = false;
  while (!isOver && epoch < options.maxEpochs && epoch - best.epoch < options.patience) {
    epoch++;
    shuffle(lists, random);
    for (let from = 0; from < lists.length && !isOver; from += options.batchSize) {
      gradient.fill(0);
      const batch = lists.slice(from, from + options.batchSize);
      for (const one of batch) listGradient(parameters, one, gradient, roomFor(one.list.count));
      for (let i = 0; i < gradient.length; i++) gradient[i]! /= batch.length;
      const norm = clipNorm(gradient, MAX_NORM);
      if (!Number.isFinite(norm)) {
        throw new RuvLLMError(
          'bad_gradient',
          `the gradient of ${batch.length} lists in epoch ${epoch} has the norm ${norm}`,
        );
      }
      stepAdam(parameters, gradient, adam, options);
      for (let i = 0; i < parameters.length; i++) {
        parameters[i]! -= options.learningRate * options.pull * (parameters[i]! - before[i]!);
      }
      isOver = yield;
    }
    const loss = meanLoss(parameters, judged, roomFor);
    if (loss < best.loss) best = { loss, epoch, parameters: parameters.slice() };
  }
  return {
    state: checkRerankerState({ ...start, parameters: best.parameters }),
    numExamples: lists.length,
    numValidation: judged.length,
    numSkipped: examples.length + validation.length - lists.length - judged.length,
    numEpochs: epoch,
    bestEpoch: best.epoch,
    lossBefore,
    lossAfter: best.loss,
  };
}

function readLists(examples: readonly RankExample[], directions: Float32Array): TrainingList[] {
  if (examples.length > MAX_EXAMPLES) {
    throw new RuvLLMError('invalid_option', `${examples.length} examples are more than ${MAX_EXAMPLES}`);
  }
  return examples.flatMap((example, i) => {
    const { used, candidates } = example;
    if (used.length !== candidates.length) {
      throw new RuvLLMError('invalid_option', `example ${i} says of ${used.length} of ${candidates.length} candidates whether they were used`); // prettier-ignore
    }
    return isInformative(used) ? [{ list: readRankList(example, directions), used }] : [];
  });
}

function meanLoss(
  parameters: Float32Array,
  lists: readonly TrainingList[],
  roomFor: (count: number) => AttentionRoom,
): number {
  let sum = 0;
  for (const { list, used } of lists) {
    const { scores } = attend(parameters, list, roomFor(list.count));
    sum += listLoss(scores.subarray(0, list.count), used).loss;
  }
  const mean = sum / lists.length;
  if (Number.isFinite(mean)) return mean;
  throw new RuvLLMError('bad_gradient', `the loss of ${lists.length} lists to validate is ${mean}`);
}

function shuffle<T>(items: T[], random: Random): void {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [items[i], items[j]] = [items[j]!, items[i]!];
  }
}
