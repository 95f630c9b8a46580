// All measurements of the router, on data read only at run time.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Contestant, RouteExample } from '../../../src/learning/router/index.ts';
import type { Findings } from './findings.ts';
import { claimOf, type GainTable, measureCrossFitted, type ModelTask } from './routing-cross-fit.ts';
import { ALPACA_MODELS, readAlpaca, readBanking } from './routing-data.ts';
import { hearNews, learnByFeedback } from './routing-feedback.ts';
import { encodeIntents, INTENT_LINEAR, measureIntents } from './routing-intents.ts';
import { candidatesOf, encodeAll, FREE, TEXT_ONLY } from './routing-models.ts';
import { openPart, type RoutingOptions, type RoutingPart, withVectors } from './routing-part.ts';
import { measurePower } from './routing-power.ts';
import { measureSpeed } from './routing-speed.ts';
import { curveTable, gainTable, intentTable, newsTable, powerTable, range, speedTable } from './routing-tables.ts';
import { modelVectors, tableVectors } from './routing-vectors.ts';
import { textOf } from './routers/bench-input.ts';
import { benchContestants } from './routers/contestants.ts';
import { type PartOutcome, runParts } from './run-parts.ts';

/** Equal for all requests, because the literature counts the share of requests to the large model. */
export const MMLU_COSTS = [0, 1] as const;
/** In units of a billion parameters; that of the largest is not public and assumed as three times the next. */
export const ALPACA_COSTS = [1, 3, 8, 24] as const;
const FIXED = ['always-small', 'always-large'];
const CHEAP = ['keyword', 'k-NN', 'linear', 'ridge', 'cosine ridge'];
const NETWORKS = ['MLP', 'FastGRNN'];

const onlyOf = ({ isQuick, only }: RoutingPart): readonly string[] =>
  only ?? (isQuick ? ['linear', 'ridge', 'cosine ridge'] : [...FIXED, ...CHEAP, 'bandit', ...NETWORKS]);

function gain(
  part: RoutingPart,
  task: ModelTask,
  examples: readonly RouteExample[],
  clusters: readonly string[],
): GainTable {
  const table = measureCrossFitted(task, examples, clusters, part.log);
  gainTable(table).forEach(part.show);
  return table;
}

const twoModels = (part: RoutingPart) => ({ names: ['small', 'large'], costs: MMLU_COSTS, fastGrnn: { maxEpochs: 6, weightDecay: 0.3 }, numShuffles: part.numShuffles }); // prettier-ignore

/** Questions of subjects that no training question has. */
async function measureUnseenSubjects(part: RoutingPart, { figures, rows }: Findings): Promise<void> {
  const { data, examples } = await part.encoded();
  const task = { ...twoModels(part), title: 'two models, unseen subjects', only: onlyOf(part) };
  const subjects = data.map(({ cluster }) => cluster);
  const table = gain(part, task, examples, subjects);
  const [chosen, control] = [table.rows[0]!, table.controls[0]];
  figures['router_gain'] = chosen.area;
  // The lower of the gain over random routing and the gain over shuffled outcomes.
  figures['router_gain_ci_low'] = Math.min(chosen.byRequest.low, control?.byRequest.low ?? Infinity);
  figures['router_gain_ci_low_by_subject'] = Math.min(chosen.byCluster.low, control?.byCluster.low ?? Infinity);
  figures['router_gain_claimed'] = claimOf(table).isClaimed;
  for (const { name, area } of table.rows.slice(1)) figures[`router_gain_${name.replaceAll(/\W+/g, '_')}`] = area;
  const interval = `${range(chosen.byRequest)}; by subject ${range(chosen.byCluster)}`;
  if (control === undefined) return;
  figures['router_gain_shuffled_most'] = control.most;
  const shuffled = `${control.numShuffles} shuffles: ${range({ low: control.least, high: control.most })}`;
  rows['router_gain'] = { value: chosen.area.toFixed(4), interval, control: shuffled };
  const less = `minus the mean of the shuffles: ${control.difference.toFixed(4)} (${range(control.byRequest)})`;
  rows['router_gain_ci_low'] = { value: figures['router_gain_ci_low'].toFixed(4), interval: '–', control: less };
}

/** Other questions of the same subjects. */
async function measureSeenSubjects(part: RoutingPart, { figures }: Findings): Promise<void> {
  const { data, examples } = await part.encoded();
  const questions = examples.map((one) => ({ ...one, group: textOf(one.input) }));
  const only = part.only ?? (part.isQuick ? ['ridge'] : CHEAP);
  const task = { ...twoModels(part), title: 'two models, seen subjects', only };
  const subjects = data.map(({ cluster }) => cluster);
  figures['router_gain_seen_subjects'] = gain(part, task, questions, subjects).rows[0]!.area;
}

function contestantsOfTwo(part: RoutingPart, names: readonly string[]): Contestant[] {
  const two = twoModels(part);
  return benchContestants({
      candidates: candidatesOf(two.names),
      weights: FREE,
      costs: MMLU_COSTS,
      numBuckets: TEXT_ONLY.numBuckets,
      fastGrnn: two.fastGrnn,
    }) // prettier-ignore
    .filter(({ name }) => names.includes(name));
}

/** Only good feedback on one model, then only bad. */
async function measureNews(part: RoutingPart, { figures }: Findings): Promise<void> {
  const data = await part.mmlu();
  const news = contestantsOfTwo(part, ['linear', 'ridge']).map((contestant) => hearNews(contestant, data));
  part.show(newsTable(news));
  figures['router_moves_after_news'] = news.every(({ numGood, numBad }) => numGood !== null && numBad !== null);
}

async function measureDecisions(part: RoutingPart): Promise<void> {
  const data = await part.mmlu();
  const speed = measureSpeed(contestantsOfTwo(part, ['linear', 'ridge', ...NETWORKS]), data);
  part.show(speedTable(speed));
}

async function measureFourModels(part: RoutingPart, { figures }: Findings): Promise<void> {
  const prompts = encodeAll(await withVectors(part, readAlpaca()), []).train;
  const task = { names: ALPACA_MODELS, costs: ALPACA_COSTS, fastGrnn: { maxEpochs: 5, weightDecay: 0.3 }, numShuffles: part.numShuffles }; // prettier-ignore
  const groups = prompts.map(({ group }) => group);
  const table = gain(part, { ...task, title: 'four models', only: onlyOf(part) }, prompts, groups);
  const power = measurePower(prompts, ALPACA_COSTS);
  part.show(powerTable(power, 'four models'));
  const [chosen, control] = [table.rows[0]!, table.controls[0]];
  figures['four_models_gain'] = chosen.area;
  figures['four_models_gain_ci_low'] = Math.min(chosen.byRequest.low, control?.byRequest.low ?? Infinity);
  figures['four_models_gain_claimed'] = claimOf(table).isClaimed;
}

function readQuestions() {
  const banking = readBanking();
  const names = [...new Set(banking.map(({ intent }) => intent))].sort();
  const questions = banking.map(({ text, intent }) => ({ text, group: text, cluster: intent, outcomes: names.map((name) => +(name === intent)) })); // prettier-ignore
  return { names, questions, texts: questions.map(({ text }) => text) };
}

async function measureBanking({ log, show, isQuick, miniLm }: RoutingPart, { figures, rows }: Findings): Promise<void> {
  const { names, questions, texts } = readQuestions();
  const sets = new Map([['n-grams', encodeIntents(questions)]]);
  const stories = join(process.cwd(), '..', 'shared', 'models', 'stories15M-q8_0.gguf');
  if (existsSync(stories)) sets.set('static', encodeIntents(questions, await tableVectors(stories, texts)));
  if (miniLm !== null) sets.set('MiniLM', encodeIntents(questions, await modelVectors(miniLm, texts, log)));
  log('encoded');
  const intents = measureIntents(names, sets, log, isQuick);
  show(intentTable(intents));
  const { accuracy, interval } = intents.rows.find(({ name }) => name === intents.winner)!;
  const { shuffled } = intents;
  figures['intent_accuracy'] = accuracy;
  figures['intent_accuracy_shuffled'] = shuffled.accuracy;
  const control = `shuffled labels: ${shuffled.accuracy.toFixed(4)} (${range(shuffled.interval)})`;
  rows['intent_accuracy'] = { value: accuracy.toFixed(4), interval: range(interval), control };
}

/** Intents from scratch, by feedback alone. */
async function measureFeedback({ log, show, miniLm }: RoutingPart, { figures }: Findings): Promise<void> {
  const { names, questions, texts } = readQuestions();
  const set = encodeIntents(questions, miniLm === null ? undefined : await modelVectors(miniLm, texts, log));
  const learners =
    benchContestants({
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
  const lastOf = (isRandom: boolean): number =>
    Math.max(...curves.filter((_, i) => i % 2 === +isRandom).map(({ points }) => points.at(-1)!.accuracy));
  figures['feedback_accuracy'] = lastOf(false);
  figures['feedback_accuracy_random'] = lastOf(true);
}

/** In the order of the run; each needs only the part. */
export const ROUTING_PARTS: Readonly<Record<string, (part: RoutingPart, findings: Findings) => Promise<void>>> = {
  'unseen-subjects': measureUnseenSubjects,
  'seen-subjects': measureSeenSubjects,
  'four-models': measureFourModels,
  intents: measureBanking,
  feedback: measureFeedback,
  news: measureNews,
  speed: measureDecisions,
};

/** All parts, or the named ones; an error is in the part's outcome, and the others run. */
export async function measureRouting(
  options: RoutingOptions,
  findings: Findings,
  names: readonly string[] = Object.keys(ROUTING_PARTS),
): Promise<PartOutcome[]> {
  const part = openPart(options);
  return runParts(
    names.map((name) => ({ name, run: () => ROUTING_PARTS[name]!(part, findings) })),
    part.log,
  );
}
