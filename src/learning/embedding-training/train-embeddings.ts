import { RuvLLMError } from '../../core/errors.ts';
import { createRandom } from '../../core/random.ts';
import { rankByVectors } from '../evaluation/rankings.ts';
import { compareRetrieval, ranksIn, type RelevantRanks, type RetrievalRow } from '../evaluation/retrieval.ts';
import { foldsOf } from '../router/folds.ts';
import { projectRow } from './projection-pass.ts';
import {
  type ContrastivePair,
  type ProjectionTrainingOptions,
  resolveTrainingOptions,
  shuffled,
  type TrainedProjection,
  trainProjection,
} from './train-projection.ts';

/** Two texts that belong together, and others that do not belong to the first. */
export interface EmbeddingPair {
  readonly anchor: string;
  readonly positive: string;
  /** Hard negatives. Default: none. */
  readonly negatives?: readonly string[];
  /** Pairs of a group stay on one side of the split. Default: the anchor. */
  readonly group?: string;
}

/** Held-out figures of the embeddings before and after training, and of a training on shuffled pairs. */
export interface EmbeddingTrainingReport extends Omit<TrainedProjection, 'parameters'> {
  readonly numTrained: number;
  readonly numValidation: number;
  /** Queries that are neither trained on nor used to stop. */
  readonly numHeldOut: number;
  /** Texts that they are ranked against: all positives and negatives. */
  readonly numTexts: number;
  /** `before`, `after` and `shuffled control`; gains are against `before`. */
  readonly heldOut: readonly RetrievalRow[];
}

export interface EmbeddingTrainingJob {
  readonly pairs: readonly EmbeddingPair[];
  /** Unit vectors of texts, in order. */
  embed(texts: readonly string[]): Promise<readonly Float32Array[]>;
  readonly options?: ProjectionTrainingOptions;
  /** Called after each pass, of the control, too; returning false stops with `aborted`. */
  readonly onEpoch?: (run: 'training' | 'control', epoch: number, loss: number) => boolean;
}

const NUM_FOLDS = 10;
/** Of ten folds. */
const HELD_OUT_FOLDS = 2;
/** Fewer leave folds without a group. */
export const MIN_GROUPS = 20;
const CUTOFFS = [1, 5, 10];

interface Split {
  readonly train: readonly ContrastivePair[];
  readonly validation: readonly ContrastivePair[];
  readonly heldOut: readonly ContrastivePair[];
}

/** Trains a projection on 70 % of the groups, stops by 10 % and measures it on 20 %. */
export async function trainOnPairs({ pairs, embed, options: given, onEpoch }: EmbeddingTrainingJob): Promise<{
  readonly parameters: Float32Array;
  readonly rank: number;
  readonly width: number;
  readonly report: EmbeddingTrainingReport;
}> {
  const options = resolveTrainingOptions(given);
  const groups = pairs.map(({ anchor, group = anchor }) => ({ group }));
  const numGroups = new Set(groups.map(({ group }) => group)).size;
  if (numGroups < MIN_GROUPS) {
    throw new RuvLLMError('invalid_option', `${numGroups} groups of pairs; at least ${MIN_GROUPS} are required, because a fifth is held out`, { data: { numGroups, minGroups: MIN_GROUPS } }); // prettier-ignore
  }
  const { texts, rowOf } = collectTexts(pairs);
  const vectors = await embed(texts);
  const folds = foldsOf(groups, NUM_FOLDS, options.seed);
  const rows = pairs.map(({ anchor, positive, negatives = [] }): ContrastivePair => ({
    anchor: rowOf.get(anchor)!,
    positive: rowOf.get(positive)!,
    negatives: negatives.map((text) => rowOf.get(text)!),
  }));
  const split: Split = {
    heldOut: rows.filter((_, i) => folds[i]! < HELD_OUT_FOLDS),
    validation: rows.filter((_, i) => folds[i] === HELD_OUT_FOLDS),
    train: rows.filter((_, i) => folds[i]! > HELD_OUT_FOLDS),
  };
  const run = async (name: 'training' | 'control', { train, validation }: Split): Promise<TrainedProjection> => {
    let isStopped = false;
    const trained = await trainProjection({
      vectors,
      train,
      validation,
      options,
      onEpoch(epoch, loss) {
        isStopped = onEpoch?.(name, epoch, loss) === false;
        return !isStopped;
      },
    });
    if (isStopped) throw new RuvLLMError('aborted', `stopped after ${trained.numEpochs} passes of the ${name}`);
    return trained;
  };
  const trained = await run('training', split);
  const control = await run('control', {
    ...split,
    train: shufflePositives(split.train, options.seed),
    validation: shufflePositives(split.validation, options.seed + 1),
  });
  const shape = { width: vectors[0]!.length, rank: options.rank };
  const corpus = [...new Set(rows.flatMap(({ positive, negatives }) => [positive, ...negatives]))];
  const rank = (parameters: Float32Array | null): RelevantRanks[] =>
    rankHeldOut(split.heldOut, corpus, (row) => parameters === null ? vectors[row]! : projectRow(parameters, shape, vectors[row]!).output); // prettier-ignore
  const before = rank(null);
  const { parameters, ...facts } = trained;
  return {
    parameters,
    ...shape,
    report: {
      ...facts,
      numTrained: split.train.length,
      numValidation: split.validation.length,
      numHeldOut: before.length,
      numTexts: corpus.length,
      heldOut: compareRetrieval(
        { before, after: rank(parameters), 'shuffled control': rank(control.parameters) },
        CUTOFFS.filter((k) => k === 1 || k < corpus.length),
      ),
    },
  };
}

/** Each text once. */
function collectTexts(pairs: readonly EmbeddingPair[]): { texts: string[]; rowOf: Map<string, number> } {
  const texts = [...new Set(pairs.flatMap(({ anchor, positive, negatives = [] }) => [anchor, positive, ...negatives]))];
  return { texts, rowOf: new Map(texts.map((text, row) => [text, row])) };
}

/** Gives each anchor the positive of another one. */
function shufflePositives(pairs: readonly ContrastivePair[], seed: number): ContrastivePair[] {
  const order = shuffled(pairs, createRandom(seed));
  return order.map((pair, i) => ({ ...pair, positive: order[(i + 1) % order.length]!.positive }));
}

/** Ranks all texts for each held-out anchor; the anchor itself is no result. */
function rankHeldOut(
  heldOut: readonly ContrastivePair[],
  corpus: readonly number[],
  vectorOf: (row: number) => Float32Array,
): RelevantRanks[] {
  const relevant = new Map<number, Set<number>>();
  for (const { anchor, positive } of heldOut) relevant.set(anchor, (relevant.get(anchor) ?? new Set()).add(positive));
  const anchors = [...relevant.keys()];
  const ranking = rankByVectors(corpus.map(vectorOf), anchors.map(vectorOf));
  return ranking.map((order, i) => {
    const anchor = anchors[i]!;
    const rows = order.map((at) => corpus[at]!).filter((row) => row !== anchor);
    return ranksIn(rows, [...relevant.get(anchor)!]);
  });
}
