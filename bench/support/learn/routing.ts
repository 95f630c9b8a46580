// Everything that is measured of the router, on data that is read at run time only.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Contestant, RouteExample } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';
import { type GainTable, measureCrossFitted, type ModelTask } from './routing-cross-fit.ts';
import { ALPACA_MODELS, hasRoutingSuite, type ModelOutcomes, readAlpaca, readBanking, readMmlu, routingSuite } from './routing-data.ts'; // prettier-ignore
import { hearNews, learnByFeedback, type LearningCurve, type NewsResult } from './routing-feedback.ts';
import { encodeIntents, INTENT_LINEAR, type IntentTable, measureIntents } from './routing-intents.ts';
import { candidatesOf, encodeAll, FREE, TEXT_ONLY } from './routing-models.ts';
import { measurePower } from './routing-power.ts';
import { measureSpeed, type SpeedRow } from './routing-speed.ts';
import { curveTable, gainTable, intentTable, newsTable, powerTable, speedTable } from './routing-tables.ts';
import { findMiniLm, modelVectors, tableVectors } from './routing-vectors.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');

/** Equal for all requests, as the share of requests that go to the large model is what the literature counts. */
export const MMLU_COSTS = [0, 1] as const;
/** In units of a billion parameters; that of the largest is not public and is set to three times the next. */
export const ALPACA_COSTS = [1, 3, 8, 24] as const;
const CHEAP = ['keyword', 'k-NN', 'linear', 'ridge', 'cosine ridge'];
const NETWORKS = ['MLP', 'FastGRNN'];

export interface RoutingResult {
  /** Other questions of the same subjects. */
  readonly withinSubjects: GainTable;
  readonly news: readonly NewsResult[];
  readonly speed: readonly SpeedRow[];
  readonly intents: IntentTable;
  readonly curves: readonly LearningCurve[];
  /** Questions of subjects none of the training questions is of. */
  readonly mmlu: GainTable;
  readonly router_gain: number;
  /** Of the gain over random routing and of the gain over shuffled outcomes, whichever is lower. */
  readonly router_gain_ci_low: number;
  readonly router_gain_ci_low_by_subject: number;
  readonly router_gain_shuffled_most: number;
  readonly intent_accuracy: number;
  readonly alpaca: GainTable;
}

export interface RoutingOptions {
  readonly log?: (line: string) => void;
  /** Is given each table as soon as it is there. */
  readonly show?: (rows: string[][]) => void;
  /** No networks, fewer shuffles and contestants. */
  readonly isQuick?: boolean;
  /** Contestants that take part in the tables of models, instead of all. */
  readonly only?: readonly string[] | undefined;
  /** Instead of 20, or 10 with `isQuick`. */
  readonly numShuffles?: number | undefined;
}

interface Part {
  readonly log: (line: string) => void;
  readonly show: (rows: string[][]) => void;
  readonly isQuick: boolean;
  readonly only: readonly string[] | undefined;
  readonly numShuffles: number;
  /** The questions of all subjects, read once, */
  readonly mmlu: () => Promise<ModelOutcomes[]>;
  /** and encoded once. */
  readonly encoded: () => Promise<{ readonly data: ModelOutcomes[]; readonly examples: RouteExample[] }>;
  /** Null where it cannot be had: then the terms of the texts have to do. */
  readonly miniLm: string | null;
}

export function openPart(options: RoutingOptions): Part {
  const { log = () => {}, show = () => {}, isQuick = false, only, numShuffles = isQuick ? 10 : 20 } = options;
  if (!hasRoutingSuite()) throw new Error(`the routing suite is not at ${routingSuite()}`);
  const miniLm = findMiniLm(log);
  let [read, encoded]: [ReturnType<Part['mmlu']> | null, ReturnType<Part['encoded']> | null] = [null, null];
  const mmlu = (): ReturnType<Part['mmlu']> => (read ??= withVectors({ miniLm, log }, readMmlu()));
  const encode = async () => {
    const data = await mmlu();
    const examples = encodeAll(data, []).train;
    log(`${data.length} questions encoded`);
    return { data, examples };
  };
  return { log, show, isQuick, only, numShuffles, miniLm, mmlu, encoded: () => (encoded ??= encode()) };
}

async function withVectors(
  { miniLm, log }: Pick<Part, 'miniLm' | 'log'>,
  data: readonly ModelOutcomes[],
): Promise<ModelOutcomes[]> {
  if (miniLm === null) return [...data];
  const texts = data.map(({ text }) => text);
  const vectors = await modelVectors(miniLm, texts, log);
  return data.map((one, i) => ({ ...one, vector: vectors[i]! }));
}

const onlyOf = ({ isQuick, only }: Part): readonly string[] =>
  only ?? (isQuick ? ['linear', 'ridge', 'cosine ridge'] : [...CHEAP, 'bandit', ...NETWORKS]);

function gain(part: Part, task: ModelTask, examples: readonly RouteExample[], clusters: readonly string[]): GainTable {
  const table = measureCrossFitted(task, examples, clusters, part.log);
  gainTable(table).forEach(part.show);
  return table;
}

const twoModels = (part: Part) => ({ names: ['small', 'large'], costs: MMLU_COSTS, fastGrnn: { maxEpochs: 6, weightDecay: 0.3 }, numShuffles: part.numShuffles }); // prettier-ignore

/** Questions of subjects none of the training questions is of. */
export async function measureUnseenSubjects(part: Part): Promise<GainTable> {
  const { data, examples } = await part.encoded();
  const task = { ...twoModels(part), title: 'two models, unseen subjects', only: onlyOf(part) };
  const subjects = data.map(({ cluster }) => cluster);
  return gain(part, task, examples, subjects);
}

/** Other questions of the same subjects. */
export async function measureSeenSubjects(part: Part): Promise<GainTable> {
  const { data, examples } = await part.encoded();
  const questions = examples.map((one) => ({ ...one, group: one.input.text }));
  const only = part.only ?? (part.isQuick ? ['ridge'] : CHEAP);
  const task = { ...twoModels(part), title: 'two models, seen subjects', only };
  const subjects = data.map(({ cluster }) => cluster);
  return gain(part, task, questions, subjects);
}

function contestantsOfTwo(part: Part, names: readonly string[]): Contestant[] {
  const two = twoModels(part);
  return router
    .contestantsOf({
      candidates: candidatesOf(two.names),
      weights: FREE,
      costs: MMLU_COSTS,
      numBuckets: TEXT_ONLY.numBuckets,
      fastGrnn: two.fastGrnn,
    }) // prettier-ignore
    .filter(({ name }) => names.includes(name));
}

/** Only good of one model, then only bad. */
export async function measureNews(part: Part): Promise<NewsResult[]> {
  const data = await part.mmlu();
  const news = contestantsOfTwo(part, ['linear', 'ridge']).map((contestant) => hearNews(contestant, data));
  part.show(newsTable(news));
  return news;
}

export async function measureDecisions(part: Part): Promise<SpeedRow[]> {
  const data = await part.mmlu();
  const speed = measureSpeed(contestantsOfTwo(part, ['linear', 'ridge', ...NETWORKS]), data);
  part.show(speedTable(speed));
  return speed;
}

export async function measureFourModels(part: Part): Promise<GainTable> {
  const prompts = encodeAll(await withVectors(part, readAlpaca()), []).train;
  const task = { names: ALPACA_MODELS, costs: ALPACA_COSTS, fastGrnn: { maxEpochs: 5, weightDecay: 0.3 }, numShuffles: part.numShuffles }; // prettier-ignore
  const groups = prompts.map(({ group }) => group);
  const table = gain(part, { ...task, title: 'four models', only: onlyOf(part) }, prompts, groups);
  const power = measurePower(prompts, ALPACA_COSTS);
  part.show(powerTable(power, 'four models'));
  return table;
}

function readQuestions() {
  const banking = readBanking();
  const names = [...new Set(banking.map(({ intent }) => intent))].sort();
  const questions = banking.map(({ text, intent }) => ({ text, group: text, cluster: intent, outcomes: names.map((name) => +(name === intent)) })); // prettier-ignore
  return { names, questions, texts: questions.map(({ text }) => text) };
}

export async function measureBanking({ log, show, isQuick, miniLm }: Part): Promise<IntentTable> {
  const { names, questions, texts } = readQuestions();
  const sets = new Map([['n-grams', encodeIntents(questions)]]);
  const stories = join(process.cwd(), '..', 'shared', 'models', 'stories15M-q8_0.gguf');
  if (existsSync(stories)) sets.set('static', encodeIntents(questions, await tableVectors(stories, texts)));
  if (miniLm !== null) sets.set('MiniLM', encodeIntents(questions, await modelVectors(miniLm, texts, log)));
  log('encoded');
  const intents = measureIntents(names, sets, log, isQuick);
  show(intentTable(intents));
  return intents;
}

/** Intents from nothing, by feedback alone. */
export async function measureFeedback({ log, show, miniLm }: Part): Promise<LearningCurve[]> {
  const { names, questions, texts } = readQuestions();
  const set = encodeIntents(questions, miniLm === null ? undefined : await modelVectors(miniLm, texts, log));
  const learners = router
    .contestantsOf({
      candidates: candidatesOf(names),
      weights: FREE,
      costs: names.map(() => 1),
      numBuckets: TEXT_ONLY.numBuckets,
      linear: INTENT_LINEAR,
      knn: { k: 10, prior: 0.1 },
    }) // prettier-ignore
    .filter(({ name }) => ['k-NN', 'ridge'].includes(name));
  const curves = learners.flatMap(({ name, train }: Contestant) => [
    learnByFeedback(name, train([], []), set, 'right or wrong'),
    learnByFeedback(`${name}, random feedback`, train([], []), set, 'random'),
  ]);
  show(curveTable(curves));
  return curves;
}

export async function measureRouting(options: RoutingOptions = {}): Promise<RoutingResult> {
  const part = openPart(options);
  const mmlu = await measureUnseenSubjects(part);
  const withinSubjects = await measureSeenSubjects(part);
  const news = await measureNews(part);
  const speed = await measureDecisions(part);
  const alpaca = await measureFourModels(part);
  const intents = await measureBanking(part);
  const curves = await measureFeedback(part);
  const [chosen, control] = [mmlu.rows[0]!, mmlu.controls[0]!];
  return {
    router_gain: chosen.area,
    router_gain_ci_low: Math.min(chosen.byRequest.low, control.byRequest.low),
    router_gain_ci_low_by_subject: Math.min(chosen.byCluster.low, control.byCluster.low),
    router_gain_shuffled_most: control.most,
    intent_accuracy: intents.rows.find(({ name }) => name === intents.winner)!.accuracy,
    mmlu,
    withinSubjects,
    news,
    speed,
    alpaca,
    intents,
    curves,
  };
}
