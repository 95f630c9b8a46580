// All measurements of the router, on data read only at run time.
import type { Contestant, RouteExample } from '../../../src/learning/router/index.ts';
import type { Findings } from './findings.ts';
import { claimOf, type GainTable, measureCrossFitted, type ModelTask } from './routing-cross-fit.ts';
import { ALPACA_MODELS, readAlpaca, readBanking } from './routing-data.ts';
import { hearNews, learnByFeedback } from './routing-feedback.ts';
import { encodeIntents, INTENT_LINEAR, measureIntents } from './routing-intents.ts';
import { candidatesOf, encodeAll, FREE, SERVED } from './routing-models.ts';
import { openPart, type RoutingOptions, type RoutingPart, withVectors } from './routing-part.ts';
import { measurePower } from './routing-power.ts';
import { measureSpeed } from './routing-speed.ts';
import { measureScope } from './routing-scope.ts';
import { curveTable, gainTable, intentTable, newsTable, powerTable, range, scopeTable, speedTable } from './routing-tables.ts'; // prettier-ignore
import { modelVectors } from './routing-vectors.ts';
import { textOf } from './routers/bench-input.ts';
import { benchContestants } from './routers/contestants.ts';
import { type PartOutcome, runParts } from './run-parts.ts';

/** Equal for all requests, because the literature counts the share of requests to the large model. */
export const MMLU_COSTS = [0, 1] as const;
/** In units of a billion parameters; that of the largest is not public and assumed as three times the next. */
export const ALPACA_COSTS = [1, 3, 8, 24] as const;
/** As in the service. `--only` names others: keyword, bandit, MLP, FastGRNN. */
const SERVED_NAMES = ['length', 'k-NN', 'linear', 'ridge', 'cosine ridge', 'vector ridge', 'logistic'];
const NETWORKS = ['MLP', 'FastGRNN'];

const onlyOf = ({ only }: RoutingPart): readonly string[] => only ?? SERVED_NAMES;

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

/** The figures of all contestants and baselines beside those of the chosen one. */
function showBaselines(prefix: string, { rows, versus }: GainTable, figures: Findings['figures']): void {
  const nameOf = (name: string): string => name.replaceAll(/\W+/g, '_').toLowerCase();
  for (const { name, area } of rows.slice(1)) figures[`${prefix}_${nameOf(name)}`] = area;
  for (const { name, difference, byRequest } of versus) {
    figures[`${prefix}_minus_${nameOf(name)}`] = difference;
    figures[`${prefix}_minus_${nameOf(name)}_ci_high`] = byRequest.high;
  }
}

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
  showBaselines('router_gain', table, figures);
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
  const task = { ...twoModels(part), title: 'two models, seen subjects', only: onlyOf(part) };
  const subjects = data.map(({ cluster }) => cluster);
  const table = gain(part, task, questions, subjects);
  figures['router_gain_seen_subjects'] = table.rows[0]!.area;
  showBaselines('router_gain_seen_subjects', table, figures);
}

function contestantsOfTwo(part: RoutingPart, names: readonly string[]): Contestant[] {
  const two = twoModels(part);
  return benchContestants({
      candidates: candidatesOf(two.names),
      weights: FREE,
      costs: MMLU_COSTS,
      numBuckets: SERVED.numBuckets,
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
  if (!part.isQuick) part.show(powerTable(measurePower(prompts, ALPACA_COSTS), 'four models'));
  const [chosen, control] = [table.rows[0]!, table.controls[0]];
  figures['four_models_gain'] = chosen.area;
  figures['four_models_gain_ci_low'] = Math.min(chosen.byRequest.low, control?.byRequest.low ?? Infinity);
  figures['four_models_gain_claimed'] = claimOf(table).isClaimed;
  showBaselines('four_models_gain', table, figures);
}

/** Every third, because embedding and fitting all of them takes minutes. */
function readQuestions() {
  const banking = readBanking().filter((_, i) => i % 3 === 0);
  const names = [...new Set(banking.map(({ intent }) => intent))].sort();
  const questions = banking.map(({ text, intent }) => ({ text, group: text, cluster: intent, outcomes: names.map((name) => +(name === intent)) })); // prettier-ignore
  return { names, questions, texts: questions.map(({ text }) => text) };
}

async function measureBanking({ log, show, miniLm }: RoutingPart, { figures, rows }: Findings): Promise<void> {
  const { names, questions, texts } = readQuestions();
  const sets = new Map([['terms', encodeIntents(questions)]]);
  if (miniLm !== null) sets.set('MiniLM', encodeIntents(questions, await modelVectors(miniLm, texts, log)));
  log('encoded');
  const intents = measureIntents(names, sets, log);
  show(intentTable(intents));
  const { accuracy, interval } = intents.rows.find(({ name }) => name === intents.winner)!;
  const { shuffled } = intents;
  figures['intent_accuracy'] = accuracy;
  figures['intent_accuracy_shuffled'] = shuffled.accuracy;
  const control = `shuffled labels: ${shuffled.accuracy.toFixed(4)} (${range(shuffled.interval)})`;
  for (const row of intents.rows)
    figures[`intent_accuracy_${row.name.replaceAll(/\W+/g, '_').toLowerCase()}`] = row.accuracy;
  rows['intent_accuracy'] = { value: accuracy.toFixed(4), interval: range(interval), control };
}

async function measureOutOfScope(part: RoutingPart, { figures }: Findings): Promise<void> {
  if (part.miniLm === null) return part.log('out-of-scope questions: not measured without the sentence encoder');
  const table = measureScope(await withVectors(part, readQuestions().questions), await withVectors(part, readAlpaca()));
  part.show(scopeTable(table));
  const [known, near, far] = table.rows.map(({ rejected }) => rejected);
  Object.assign(figures, { scope_false_rejections: known, scope_recall_near: near, scope_recall_far: far });
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
      numBuckets: SERVED.numBuckets,
      linear: INTENT_LINEAR,
      knn: { k: 10, prior: 0.1 },
      hasVectors: miniLm !== null,
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
  scope: measureOutOfScope,
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
  const part = await openPart(options);
  return runParts(
    names.map((name) => ({ name, run: () => ROUTING_PARTS[name]!(part, findings) })),
    part.log,
  );
}
