import type { LowRankFactors } from '../../../src/adapters/types.ts';
import type { TokenSample } from '../../../src/learning/micro-lora/types.ts';
import type { TrainingExample } from '../../../src/learning/lora-training/types.ts';
import { importBuilt } from '../dist.ts';
import { percentile } from '../report.ts';
import { type LearnModel, runText, sampleOwnTexts } from './learn-model.ts';
import { openPupils, type Pupil } from './pupil.ts';
import { type Interval, interval, pairedChange } from './statistics.ts';
import { NUM_TAUGHT_TEMPLATES, type Topic, TOPICS, type TopicText, writeTopic } from './topic-corpus.ts';

export interface MicroLoraOptions {
  readonly numCorrections: number;
  readonly numHeldOut: number;
  readonly seed: number;
  readonly learningRate?: number;
  /** True: without the margins, which take most of the time. */
  readonly isQuick?: boolean;
}

export interface LossChanges {
  /** Held-out texts of the topic. */
  readonly topic: Interval;
  /** Texts sampled from the model. */
  readonly ownTexts: Interval;
  /** Texts of another topic, never taught. */
  readonly otherTopic: Interval;
}

export interface MicroLoraResult {
  /** Losses before learning. */
  readonly before: { readonly topic: number; readonly ownTexts: number; readonly otherTopic: number };
  readonly accepted: LossChanges;
  /** The same prompts, with labels drawn from other texts. */
  readonly shuffledLabels: LossChanges;
  /** Increase of the likelihood of right facts over wrong ones, on held-out texts: with true and with shuffled verdicts. */
  readonly margin: { readonly trueVerdicts: Interval; readonly shuffledVerdicts: Interval } | null;
  /** Number of corrections until the model gives an answer, from scratch each time. */
  readonly untilSaid: UntilSaid;
  /** Whether logits kept the same bits without feedback. */
  readonly isUnchangedWithoutFeedback: boolean;
  /** Of one judged step with all tokens of an answer. */
  readonly updateMs: { readonly p50: number; readonly p99: number; readonly times: readonly number[] };
}

export interface UntilSaid {
  readonly p50: number;
  readonly p90: number;
  /** Answers not reached after `MAX_SAID` corrections. */
  readonly numNever: number;
}

/** Number of top tokens per sample. */
const NUM_TOP = 64;
const MAX_SAID = 50;
/** Typical first corrections: a word or two. */
const SHORT_CORRECTIONS = Object.entries({
  zog: ' purple.',
  mip: ' sleepy.',
  tarn: ' angry.',
  bell: ' wet.',
  dorf: ' orange.',
  hut: ' hungry.',
  lamp: ' silver.',
  pond: ' a king.',
  rock: ' lost.',
  sled: ' cold.',
}).map(([name, answer]) => ({ prompt: `Once upon a time there was a ${name}. The ${name} was`, answer }));

/** After N accepted corrections of one topic: the change on held-out texts of the topic and on all others. */
export async function measureMicroLora(model: LearnModel, options: MicroLoraOptions): Promise<MicroLoraResult> {
  const { PROBES } = await importBuilt<typeof import('../../../src/learning/sona/probes.ts')>('learning/sona/probes');
  const { numCorrections, numHeldOut, seed, learningRate } = options;
  const { embeddingDim: hiddenDim, vocabSize } = model.served.shape;
  const probes: TokenSample[] = [];
  for (const { question, answer } of PROBES) {
    const samples = samplesOf(model, await runText(model, model.encode({ prompt: question, answer: ` ${answer}` })));
    // As the loop does: the model's own choice is the label.
    for (const one of samples) probes.push({ ...one, label: one.ids[0]!, labelLogit: one.logits[0]! });
  }
  const create = await openPupils({ hiddenDim, vocabSize }, probes);
  const [topic, other, wrong] = TOPICS as [Topic, Topic, Topic];
  const encode = (texts: readonly TopicText[]): TrainingExample[] => texts.map((text) => model.encode(text));
  const taught = encode(writeTopic({ topic, part: 'taught', numTexts: numCorrections, seed }));
  const sets = {
    topic: encode(writeTopic({ topic, part: 'held out', numTexts: numHeldOut, seed: seed + 1 })),
    ownTexts: await sampleOwnTexts(model, { numTexts: Math.ceil(numHeldOut / 2), numTokens: 64, seed: seed + 2 }),
    otherTopic: encode(writeTopic({ topic: other, part: 'held out', numTexts: numHeldOut, seed: seed + 3 })),
  };
  const lossesOf = async (lora: Pupil | null) => ({
    topic: await evaluate(model, lora, sets.topic),
    ownTexts: await evaluate(model, lora, sets.ownTexts),
    otherTopic: await evaluate(model, lora, sets.otherTopic),
  });
  const before = await lossesOf(null);
  const changes = async (lora: Pupil): Promise<LossChanges> => {
    const after = await lossesOf(lora);
    return {
      topic: pairedChange(before.topic, after.topic),
      ownTexts: pairedChange(before.ownTexts, after.ownTexts),
      otherTopic: pairedChange(before.otherTopic, after.otherTopic),
    };
  };

  const idle = create();
  const isUnchangedWithoutFeedback = String((await lossesOf(idle)).topic) === String(before.topic);

  const times: number[] = [];
  const lora = create();
  for (const example of taught) await teach(model, lora, example, { quality: 1, learningRate, times });

  const foreign = sets.ownTexts.flatMap(({ tokenIds }) => Array.from(tokenIds));
  const confused = create();
  const { createRandom } = await importBuilt<typeof import('../../../src/core/random.ts')>('core/random');
  const random = createRandom(seed + 4);
  const relabel = (): number => foreign[Math.floor(random.next() * foreign.length)]!;
  for (const example of taught) await teach(model, confused, example, { quality: 1, learningRate, relabel });

  // A stream of right and wrong answers, in turn for every template; the coin accepts and rejects both equally per
  // template, so that its verdicts carry no information. Some facts are easier to learn than others: each set is called
  // right once, and the changes are averaged.
  const round = (i: number): number => Math.floor(i / NUM_TAUGHT_TEMPLATES);
  const isRight = taught.map((_, i) => (i + round(i)) % 2 === 0);
  const coin = taught.map((_, i) => (round(i) >> 1) % 2 === 0);
  const answersOf = (facts: Topic) => ({
    taught: encode(writeTopic({ topic, facts, part: 'taught', numTexts: numCorrections, seed })),
    heldOut: encode(writeTopic({ topic, facts, part: 'held out', numTexts: numHeldOut, seed: seed + 1 })),
  });
  const roles = [answersOf(topic), answersOf(wrong)] as const;
  const marginChanges = async (verdicts: readonly boolean[], right: 0 | 1): Promise<number[]> => {
    const [rights, wrongs] = [roles[right], roles[right === 0 ? 1 : 0]];
    const marginOf = async (lora: Pupil | null): Promise<number[]> => {
      const ofRight = await evaluate(model, lora, rights.heldOut);
      return (await evaluate(model, lora, wrongs.heldOut)).map((loss, i) => loss - ofRight[i]!);
    };
    const judged = create();
    for (const [i, accepts] of verdicts.entries()) {
      const answered = (isRight[i] ? rights : wrongs).taught[i]!;
      await teach(model, judged, answered, { quality: accepts ? 1 : 0, learningRate });
    }
    const marginBefore = await marginOf(null);
    return (await marginOf(judged)).map((margin, i) => margin - marginBefore[i]!);
  };
  const marginAfter = async (verdicts: readonly boolean[]): Promise<Interval> => {
    const other = await marginChanges(verdicts, 1);
    return interval((await marginChanges(verdicts, 0)).map((change, i) => (change + other[i]!) / 2));
  };

  times.sort((a, b) => a - b);
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    before: { topic: mean(before.topic), ownTexts: mean(before.ownTexts), otherTopic: mean(before.otherTopic) },
    accepted: await changes(lora),
    shuffledLabels: await changes(confused),
    margin:
      options.isQuick === true
        ? null
        : { trueVerdicts: await marginAfter(isRight), shuffledVerdicts: await marginAfter(coin) },
    untilSaid: await countUntilSaid(model, encode(SHORT_CORRECTIONS), create, learningRate),
    isUnchangedWithoutFeedback,
    updateMs: { p50: percentile(times, 0.5), p99: percentile(times, 0.99), times },
  };
}

/** No K or V depends on the head: if each token of an answer is the most likely after its predecessors, it is the greedy answer. */
async function countUntilSaid(
  model: LearnModel,
  answers: readonly TrainingExample[],
  create: () => Pupil,
  learningRate: number | undefined,
): Promise<UntilSaid> {
  const { vocabSize, embeddingDim } = model.served.shape;
  const counts: number[] = [];
  for (const answer of answers) {
    const { logits, hidden, labels } = await runText(model, answer);
    const lora = create();
    const isGreedyAnswer = (): boolean =>
      labels.every((label, row) => {
        const values = logits.slice(row * vocabSize, (row + 1) * vocabSize);
        addDelta(lora.factors(), hidden.subarray(row * embeddingDim, (row + 1) * embeddingDim), values);
        return values.every((value) => value <= values[label]!);
      });
    const samples = samplesOf(model, { logits, hidden, labels });
    let count = 0;
    while (count <= MAX_SAID && !isGreedyAnswer()) {
      lora.teach(samples, { quality: 1, learningRate, name: 'correction' });
      count++;
    }
    counts.push(count);
  }
  counts.sort((a, b) => a - b);
  const numNever = counts.filter((count) => count > MAX_SAID).length;
  return { p50: percentile(counts, 0.5), p90: percentile(counts, 0.9), numNever };
}

interface Lesson {
  readonly quality: number;
  readonly learningRate?: number | undefined;
  readonly relabel?: () => number;
  readonly times?: number[];
}

async function teach(model: LearnModel, lora: Pupil, example: TrainingExample, lesson: Lesson): Promise<void> {
  const samples = samplesOf(model, await runText(model, example), lesson.relabel);
  const name = Array.from(example.tokenIds).join(' ');
  const start = performance.now();
  lora.teach(samples, { ...lesson, name });
  lesson.times?.push(performance.now() - start);
}

function samplesOf(
  model: LearnModel,
  { logits, hidden, labels }: Awaited<ReturnType<typeof runText>>,
  relabel?: () => number,
): TokenSample[] {
  const { vocabSize, embeddingDim } = model.served.shape;
  return labels.map((truth, row): TokenSample => {
    const values = logits.subarray(row * vocabSize, (row + 1) * vocabSize);
    const label = relabel?.() ?? truth;
    const ids = topIds(values, NUM_TOP);
    return {
      hidden: hidden.slice(row * embeddingDim, (row + 1) * embeddingDim),
      label,
      ids,
      logits: ids.map((id) => values[id]!),
      labelLogit: values[label]!,
      logSumExp: logSumExp(values),
    };
  });
}

/** Mean loss of each text's answer, with the adapter's change of the logits. */
async function evaluate(model: LearnModel, lora: Pupil | null, texts: readonly TrainingExample[]): Promise<number[]> {
  const { vocabSize, embeddingDim } = model.served.shape;
  const losses: number[] = [];
  for (const text of texts) {
    const { logits, hidden, labels } = await runText(model, text);
    let sum = 0;
    for (const [row, label] of labels.entries()) {
      const values = logits.slice(row * vocabSize, (row + 1) * vocabSize);
      addDelta(lora?.factors() ?? null, hidden.subarray(row * embeddingDim, (row + 1) * embeddingDim), values);
      sum += logSumExp(values) - values[label]!;
    }
    losses.push(sum / labels.length);
  }
  return losses;
}

/** Adds what the adapter adds to the logits of a hidden state. */
function addDelta(factors: LowRankFactors | null, hidden: Float32Array, logits: Float32Array): void {
  if (factors === null) return;
  const { a, b, rank, scale, numRows, numCols } = factors;
  for (let r = 0; r < rank; r++) {
    let u = 0;
    for (let i = 0; i < numCols; i++) u += hidden[i]! * a[r * numCols + i]! * scale;
    for (let row = 0; row < numRows; row++) logits[row]! += b[row * rank + r]! * u;
  }
}

function logSumExp(values: Float32Array): number {
  let max = -Infinity;
  for (const value of values) if (value > max) max = value;
  let sum = 0;
  for (const value of values) sum += Math.exp(value - max);
  return max + Math.log(sum);
}

/** The likeliest tokens, best first. */
function topIds(values: Float32Array, count: number): number[] {
  const least = values.slice().sort().at(-count)!;
  const ids: number[] = [];
  for (let id = 0; id < values.length; id++) if (values[id]! >= least) ids.push(id);
  return ids.sort((a, b) => values[b]! - values[a]!).slice(0, count);
}
