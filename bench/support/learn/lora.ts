import type { TrainingExample, TrainingModel } from '../../../src/learning/lora-training/types.ts';
import { importBuilt } from '../dist.ts';
import { type LearnModel, MAX_TEXT_TOKENS, sampleOwnTexts } from './learn-model.ts';
import { type Interval, pairedChange } from './statistics.ts';
import { type Topic, TOPICS, type TopicText, writeTopic } from './topic-corpus.ts';

export interface LoraOptions {
  readonly numCorrections: number;
  readonly numHeldOut: number;
  readonly seed: number;
  readonly rank: number;
  readonly numLayers: number;
  readonly numEpochs: number;
  readonly learningRate: number;
  /** Texts sampled from the model that are replayed beside the corrections; different from the evaluated ones. */
  readonly numReplayed: number;
}

export interface LoraResult {
  readonly before: { readonly topic: number; readonly ownTexts: number };
  readonly topic: Interval;
  readonly ownTexts: Interval;
  /** The same texts with the tokens of all answers shuffled: the same words without facts to learn. */
  readonly shuffledTopic: Interval;
  readonly isUnchangedWithoutSteps: boolean;
  readonly trainSeconds: number;
  readonly tokensPerSecond: number;
  readonly numParameters: number;
}

/** Low-rank factors of the last layers, trained by back-propagation on accepted corrections of one topic. */
export async function measureLora(model: LearnModel, options: LoraOptions): Promise<LoraResult> {
  const { trainLora } = await importBuilt<typeof import('../../../src/learning/lora-training/train-lora.ts')>(
    'learning/lora-training/train-lora',
  );
  const training = await openTraining(model, options);
  const { numCorrections, numHeldOut, seed, numEpochs, learningRate, numReplayed } = options;
  const [topic] = TOPICS as [Topic];
  const encode = (texts: readonly TopicText[]): TrainingExample[] => texts.map((text) => model.encode(text));
  const taught = encode(writeTopic({ topic, part: 'taught', numTexts: numCorrections, seed }));
  const heldOut = encode(writeTopic({ topic, part: 'held out', numTexts: numHeldOut, seed: seed + 1 }));
  const ownTexts = await sampleOwnTexts(model, { numTexts: Math.ceil(numHeldOut / 2), numTokens: 64, seed: seed + 2 });
  const replayed = await sampleOwnTexts(model, { numTexts: numReplayed, numTokens: 64, seed: seed + 3 });
  const before = { topic: await lossesOf(training, null, heldOut), ownTexts: await lossesOf(training, null, ownTexts) };

  const train = { seed, numEpochs, learningRate };
  const { parameters: idle } = await trainLora(training, [...taught, ...replayed], { ...train, maxSteps: 0 });
  const isUnchangedWithoutSteps = String(await lossesOf(training, idle, heldOut)) === String(before.topic);
  const start = performance.now();
  const { parameters } = await trainLora(training, [...taught, ...replayed], train);
  const trainSeconds = (performance.now() - start) / 1000;
  const numTokens = [...taught, ...replayed].reduce((sum, { tokenIds }) => sum + tokenIds.length, 0) * numEpochs;
  const { parameters: confused } = await trainLora(
    training,
    [...(await shuffleAnswers(taught, seed + 5)), ...replayed],
    train,
  );
  const result = {
    before: { topic: mean(before.topic), ownTexts: mean(before.ownTexts) },
    topic: pairedChange(before.topic, await lossesOf(training, parameters, heldOut)),
    ownTexts: pairedChange(before.ownTexts, await lossesOf(training, parameters, ownTexts)),
    shuffledTopic: pairedChange(before.topic, await lossesOf(training, confused, heldOut)),
    isUnchangedWithoutSteps,
    trainSeconds,
    tokensPerSecond: numTokens / trainSeconds,
    numParameters: training.layout.numParameters,
  };
  await training.dispose();
  return result;
}

export async function openTraining(
  { gguf, factory, numThreads }: LearnModel,
  { rank, numLayers }: Pick<LoraOptions, 'rank' | 'numLayers'>,
): Promise<TrainingModel> {
  const { createTrainingModel } = await importBuilt<
    typeof import('../../../src/learning/lora-training/training-model.ts')
  >('learning/lora-training/training-model');
  return createTrainingModel(gguf, factory, { rank, numLayers, numThreads, maxTokens: MAX_TEXT_TOKENS });
}

export async function lossesOf(
  training: TrainingModel,
  parameters: Float32Array | null,
  texts: readonly TrainingExample[],
): Promise<number[]> {
  const losses: number[] = [];
  for (const text of texts) losses.push((await training.loss(parameters, text)).loss);
  return losses;
}

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

async function shuffleAnswers(texts: readonly TrainingExample[], seed: number): Promise<TrainingExample[]> {
  const { createRandom } = await importBuilt<typeof import('../../../src/core/random.ts')>('core/random');
  const random = createRandom(seed);
  const tokens = texts.flatMap(({ tokenIds, numPromptTokens }) => Array.from(tokenIds).slice(numPromptTokens));
  for (let i = tokens.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [tokens[i], tokens[j]] = [tokens[j]!, tokens[i]!];
  }
  return texts.map(({ tokenIds, numPromptTokens }) => ({
    tokenIds: [
      ...Array.from(tokenIds).slice(0, numPromptTokens),
      ...tokens.splice(0, tokenIds.length - numPromptTokens),
    ],
    numPromptTokens,
  }));
}
