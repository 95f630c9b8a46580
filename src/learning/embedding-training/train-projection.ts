import { RuvLLMError } from '../../core/errors.ts';
import { integerOption, numberOption, resolveOptions } from '../../core/options.ts';
import { createRandom, drawNormal, type Random } from '../../core/random.ts';
import { clipNorm, createAdamState, stepAdam } from '../lora-training/adam.ts';
import { contrastiveLoss } from './contrastive-loss.ts';
import { projectRow, projectRowBackward, type ProjectionShape } from './projection-pass.ts';

/** Rows of embeddings that belong together. */
export interface ContrastivePair {
  readonly anchor: number;
  readonly positive: number;
  /** Hard negatives; none: only the other pairs of a batch are negatives. */
  readonly negatives: readonly number[];
}

/** How a projection of embeddings is trained; all have defaults. */
export interface ProjectionTrainingOptions {
  /** Rank of the projection. Default 32. */
  readonly rank?: number;
  /** Passes over the pairs, at most; training stops at the pass with the lowest validation loss. Default 30. */
  readonly numEpochs?: number;
  /** Pairs per step: each is a negative of all others. Default 32. */
  readonly batchSize?: number;
  /** Default 0.001. */
  readonly learningRate?: number;
  /** Divides the cosines; lower ones weigh near negatives more. Default 0.05. */
  readonly temperature?: number;
  /** Default 1. */
  readonly seed?: number;
}

export const resolveTrainingOptions = (given?: ProjectionTrainingOptions): Required<ProjectionTrainingOptions> =>
  resolveOptions<Required<ProjectionTrainingOptions>>('embedding training', given, {
    rank: integerOption(32, 1, 256),
    numEpochs: integerOption(30, 1, 10_000),
    batchSize: integerOption(32, 2, 1024),
    learningRate: numberOption(1e-3, 1e-9, 1),
    temperature: numberOption(0.05, 1e-3, 10),
    seed: integerOption(1, 0, 2 ** 31),
  });

export interface TrainedProjection {
  /** A, then B; B is 0 if no pass improved the validation loss. */
  readonly parameters: Float32Array;
  /** 0: no pass improved it, and the projection is the identity. */
  readonly bestEpoch: number;
  readonly numEpochs: number;
  /** Of the validation pairs, before the first pass and after the best one. */
  readonly lossBefore: number;
  readonly lossAfter: number;
}

/** A longer step would leave the neighbourhood in which the gradient holds. */
const MAX_NORM = 1;
/** Passes without a lower validation loss before training stops. */
const PATIENCE = 5;

interface Job {
  /** Unit vectors by row. */
  readonly vectors: readonly Float32Array[];
  readonly train: readonly ContrastivePair[];
  /** For stopping early; none of them is trained on. */
  readonly validation: readonly ContrastivePair[];
  readonly options: Required<ProjectionTrainingOptions>;
  /** Called after each pass; returning false stops the training. */
  readonly onEpoch?: (epoch: number, validationLoss: number) => boolean | Promise<boolean>;
}

/** Trains a projection that starts as the identity, because B starts at 0. */
export async function trainProjection({
  vectors,
  train,
  validation,
  options,
  onEpoch,
}: Job): Promise<TrainedProjection> {
  if (train.length < 2 || validation.length < 2) {
    throw new RuvLLMError('invalid_option', `${train.length} training and ${validation.length} validation pairs; at least 2 of each are required`, { data: { numTrain: train.length, numValidation: validation.length } }); // prettier-ignore
  }
  const { rank, numEpochs, batchSize, learningRate, temperature, seed } = options;
  const width = vectors[0]!.length;
  const shape: ProjectionShape = { width, rank };
  const random = createRandom(seed);
  const parameters = new Float32Array(2 * width * rank);
  for (let i = 0; i < width * rank; i++) parameters[i] = drawNormal(random) / Math.sqrt(width);
  const positives = positivesOf([...train, ...validation], vectors.length);
  const step = (pairs: readonly ContrastivePair[], gradient: Float32Array | null): number =>
    runBatch({ vectors, pairs, parameters, shape, temperature, positives }, gradient);
  const validationLoss = (): number => {
    const parts = batchesOf(validation, batchSize);
    return parts.reduce((sum, part) => sum + step(part, null) * part.length, 0) / validation.length;
  };
  const lossBefore = validationLoss();
  let best = { parameters: parameters.slice(), epoch: 0, loss: lossBefore };
  const adam = createAdamState(parameters.length);
  let epoch = 0;
  while (epoch < numEpochs && epoch - best.epoch < PATIENCE) {
    for (const part of batchesOf(shuffled(train, random), batchSize)) {
      const gradient = new Float32Array(parameters.length);
      step(part, gradient);
      clipNorm(gradient, MAX_NORM);
      stepAdam(parameters, gradient, adam, { learningRate });
    }
    epoch++;
    const loss = validationLoss();
    if (loss < best.loss) best = { parameters: parameters.slice(), epoch, loss };
    if ((await onEpoch?.(epoch, loss)) === false) break;
  }
  return { parameters: best.parameters, bestEpoch: best.epoch, numEpochs: epoch, lossBefore, lossAfter: best.loss };
}

interface Batch {
  readonly vectors: readonly Float32Array[];
  readonly pairs: readonly ContrastivePair[];
  readonly parameters: Float32Array;
  readonly shape: ProjectionShape;
  readonly temperature: number;
  readonly positives: readonly ReadonlySet<number>[];
}

function runBatch(
  { vectors, pairs, parameters, shape, temperature, positives }: Batch,
  gradient: Float32Array | null,
): number {
  const candidateRows = [...pairs.map(({ positive }) => positive), ...pairs.flatMap(({ negatives }) => negatives)];
  const anchors = pairs.map(({ anchor }) => projectRow(parameters, shape, vectors[anchor]!));
  const candidates = candidateRows.map((row) => projectRow(parameters, shape, vectors[row]!));
  const { loss, ...slopes } = contrastiveLoss(
    {
      anchors: anchors.map(({ output }) => output),
      candidates: candidates.map(({ output }) => output),
      // Another positive of the same anchor, or the anchor itself, is no negative.
      isMasked: (i, j) => positives[pairs[i]!.anchor]!.has(candidateRows[j]!) || candidateRows[j] === pairs[i]!.anchor,
    },
    temperature,
  );
  if (gradient !== null) {
    anchors.forEach((row, i) => projectRowBackward(parameters, shape, row, slopes.anchors[i]!, gradient));
    candidates.forEach((row, j) => projectRowBackward(parameters, shape, row, slopes.candidates[j]!, gradient));
  }
  return loss;
}

function positivesOf(pairs: readonly ContrastivePair[], numRows: number): ReadonlySet<number>[] {
  const positives = Array.from({ length: numRows }, () => new Set<number>());
  for (const { anchor, positive } of pairs) positives[anchor]!.add(positive);
  return positives;
}

/** A last batch of one pair has no negatives, so it joins the one before. */
function batchesOf(pairs: readonly ContrastivePair[], size: number): ContrastivePair[][] {
  const batches: ContrastivePair[][] = [];
  for (let from = 0; from < pairs.length; from += size) batches.push(pairs.slice(from, from + size));
  const last = batches.at(-1)!;
  if (last.length === 1 && batches.length > 1) {
    batches.pop();
    batches.at(-1)!.push(...last);
  }
  return batches;
}

export function shuffled<T>(values: readonly T[], random: Random): T[] {
  const copy = [...values];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [copy[i], copy[j]] = [copy[j]!, copy[i]!];
  }
  return copy;
}
