// Everything that is measured of the router, on data that is read at run time only.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Contestant } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';
import { type GainTable, measureCrossFitted, type ModelTask } from './routing-cross-fit.ts';
import { ALPACA_MODELS, hasRoutingSuite, type ModelOutcomes, readAlpaca, readBanking, readMmlu, routingSuite } from './routing-data.ts'; // prettier-ignore
import { hearNews, learnByFeedback, type LearningCurve, type NewsResult } from './routing-feedback.ts';
import { encodeIntents, INTENT_LINEAR, type IntentTable, measureIntents } from './routing-intents.ts';
import { candidatesOf, FREE, TEXT_ONLY } from './routing-models.ts';
import { measureSpeed, type SpeedRow } from './routing-speed.ts';
import { curveTable, gainTable, intentTable, newsTable, speedTable } from './routing-tables.ts';
import { findMiniLm, modelVectors, tableVectors } from './routing-vectors.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');

/** Equal for all requests, as the share of requests that go to the large model is what the literature counts. */
export const MMLU_COSTS = [0, 1] as const;
/** In units of a billion parameters; that of the largest is not public and is set to three times the next. */
export const ALPACA_COSTS = [1, 3, 8, 24] as const;
const CHEAP = ['keyword', 'k-NN', 'linear', 'ridge', 'bandit'];

export interface RoutingResult {
  readonly router_gain: number;
  readonly router_gain_ci_low: number;
  readonly intent_accuracy: number;
  /** Questions of subjects none of the training questions is of. */
  readonly mmlu: GainTable;
  /** Other questions of the same subjects. */
  readonly withinSubjects: GainTable;
  readonly alpaca: GainTable;
  readonly intents: IntentTable;
  readonly curves: readonly LearningCurve[];
  readonly news: readonly NewsResult[];
  readonly speed: readonly SpeedRow[];
}

export interface RoutingOptions {
  readonly log?: (line: string) => void;
  /** Is given each table as soon as it is there. */
  readonly show?: (rows: string[][]) => void;
  /** No networks, fewer shuffles, two tables less. */
  readonly isQuick?: boolean;
}

export async function measureRouting({
  log = () => {},
  show = () => {},
  isQuick = false,
}: RoutingOptions = {}): Promise<RoutingResult> {
  // prettier-ignore
  if (!hasRoutingSuite()) throw new Error(`the routing suite is not at ${routingSuite()}`);
  const miniLm = findMiniLm(log);
  const withVectors = async (data: readonly ModelOutcomes[]): Promise<ModelOutcomes[]> => {
    if (miniLm === null) return [...data];
    const vectors = await modelVectors(miniLm, data.map(({ text }) => text), log); // prettier-ignore
    return data.map((one, i) => ({ ...one, vector: vectors[i]! }));
  };
  const mmluData = await withVectors(readMmlu());
  const numShuffles = isQuick ? 10 : 20;
  const two = { names: ['small', 'large'], costs: MMLU_COSTS, fastGrnn: { maxEpochs: 6, weightDecay: 0.3 }, numShuffles }; // prettier-ignore
  const only = isQuick ? CHEAP : [...CHEAP, 'FastGRNN'];
  const gain = (task: ModelTask, data: readonly ModelOutcomes[]): GainTable => {
    const table = measureCrossFitted(task, data, log);
    gainTable(table).forEach(show);
    return table;
  };
  const mmlu = gain({ ...two, title: 'two models, unseen subjects', only }, mmluData);
  const within = mmluData.map((one) => ({ ...one, group: one.text }));
  const withinSubjects = gain(
    { ...two, title: 'two models, seen subjects', only: isQuick ? ['ridge'] : CHEAP },
    within,
  );
  const four = { names: ALPACA_MODELS, costs: ALPACA_COSTS, fastGrnn: { maxEpochs: 5, weightDecay: 0.3 }, numShuffles };
  const alpaca = gain({ ...four, title: 'four models', only }, await withVectors(readAlpaca()));

  const banking = readBanking();
  const names = [...new Set(banking.map(({ intent }) => intent))].sort();
  const questions = banking.map(({ text, intent }) => ({ text, group: text, cluster: intent, outcomes: names.map((name) => +(name === intent)) })); // prettier-ignore
  const texts = questions.map(({ text }) => text);
  const sets = new Map([['n-grams', encodeIntents(questions)]]);
  const stories = join(process.cwd(), '..', 'shared', 'models', 'stories15M-q8_0.gguf');
  if (existsSync(stories) && !isQuick) sets.set('static', encodeIntents(questions, await tableVectors(stories, texts)));
  if (miniLm !== null) sets.set('MiniLM', encodeIntents(questions, await modelVectors(miniLm, texts, log)));
  const intents = measureIntents(names, sets, log, isQuick);
  show(intentTable(intents));
  const set = sets.get(intents.encoding)!;
  const fresh = (): [string, Contestant][] =>
    router
      .contestantsOf({
        candidates: candidatesOf(names),
        weights: FREE,
        costs: names.map(() => 1),
        numBuckets: TEXT_ONLY.numBuckets,
        linear: INTENT_LINEAR,
        knn: { k: 10, prior: 0.1 },
      }) // prettier-ignore
      .filter(({ name }) => ['k-NN', 'linear', 'ridge'].includes(name))
      .map((contestant) => [contestant.name, contestant]);
  const curves = fresh().flatMap(([name, { train }]) => [
    learnByFeedback(name, train([], []), set, 'right or wrong'),
    learnByFeedback(`${name}, random feedback`, train([], []), set, 'random'),
  ]);
  show(curveTable(curves));

  const contestants = router
    .contestantsOf({
      candidates: candidatesOf(two.names),
      weights: FREE,
      costs: MMLU_COSTS,
      numBuckets: TEXT_ONLY.numBuckets,
      fastGrnn: two.fastGrnn,
    }) // prettier-ignore
    .filter(({ name }) => ['linear', 'ridge', 'FastGRNN'].includes(name));
  const news = contestants
    .filter(({ name }) => name !== 'FastGRNN')
    .map((contestant) => hearNews(contestant, mmluData));
  show(newsTable(news));
  const speed = measureSpeed(contestants, mmluData);
  show(speedTable(speed));
  const chosen = mmlu.rows[0]!;
  return {
    router_gain: chosen.area,
    router_gain_ci_low: Math.min(chosen.byRequest.low, mmlu.controls[0]!.byRequest.low),
    intent_accuracy: intents.rows.find(({ name }) => name === intents.winner)!.accuracy,
    mmlu,
    withinSubjects,
    alpaca,
    intents,
    curves,
    news,
    speed,
  };
}
