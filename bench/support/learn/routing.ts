// Everything that is measured of the router, on data that is read at run time only.
import { readAlpaca, readMmlu, routingSuite, hasRoutingSuite, ALPACA_MODELS } from './routing-data.ts';
import { measureCrossFitted } from './routing-alpaca.ts';
import { type IntentTable, measureIntents } from './routing-intents.ts';
import { type GainTable, measureModels, splitGroups } from './routing-models.ts';
import { measureNews, type NewsResult } from './routing-news.ts';
import { measureSpeed, type SpeedResult } from './routing-speed.ts';

/** Equal for all requests, as the share of requests that go to the large model is what the literature counts. */
export const MMLU_COSTS = [0, 1] as const;
/** In units of a billion parameters; that of the largest is not public and is set to three times the next. */
export const ALPACA_COSTS = [1, 3, 8, 24] as const;
/** The first was fixed before anything was tuned, though the success rates by subject had been seen; the others share subjects with its training part. */
export const SPLIT_SEEDS = [0, 1, 2] as const;

export interface RoutingResult {
  readonly router_gain: number;
  readonly router_gain_ci_low: number;
  readonly intent_accuracy: number;
  readonly mmlu: GainTable;
  /** Of other splits, the linear policy alone: a network for each would take minutes. */
  readonly otherSplits: readonly { readonly seed: number; readonly table: GainTable }[];
  readonly alpaca: GainTable;
  readonly intents: IntentTable;
  readonly news: NewsResult;
  readonly speed: SpeedResult;
}

/** `show` is given each table as soon as it is there. */
export async function measureRouting(
  log: (line: string) => void = () => {},
  show: (rows: string[][]) => void = () => {},
): Promise<RoutingResult> {
  if (!hasRoutingSuite()) throw new Error(`the routing suite is not at ${routingSuite()}`);
  const data = readMmlu();
  const task = { names: ['small', 'large'], costs: MMLU_COSTS, fastGrnn: { maxEpochs: 6, weightDecay: 0.3 } };
  const split = (seed: number, only?: readonly string[]): GainTable => {
    const held = splitGroups(data, seed);
    return measureModels({ ...task, ...(only && { only }) }, data.filter(({ group }) => !held.has(group)), data.filter(({ group }) => held.has(group))); // prettier-ignore
  };
  log('two models, unseen subjects …');
  const [first, ...others] = SPLIT_SEEDS;
  const mmlu = split(first);
  show(gainTable(`two models, ${mmlu.numTest} questions of unseen subjects`, mmlu));
  log('other splits …');
  const otherSplits = others.map((seed) => {
    const table = split(seed, ['linear']);
    show(gainTable(`split ${seed}, ${table.numTest} questions`, table));
    return { seed, table };
  });
  log('four models …');
  const alpaca = measureCrossFitted({ names: ALPACA_MODELS, costs: ALPACA_COSTS, fastGrnn: { maxEpochs: 5, weightDecay: 0.3 } }, readAlpaca()); // prettier-ignore
  show(gainTable(`four models, ${alpaca.numTest} prompts`, alpaca));
  log('intents …');
  const intents = measureIntents();
  show(intentTable(intents));
  show(curveTable(intents));
  const news = measureNews(data);
  const shares = [news.before, news.afterGood, news.afterBad].map((share) => share.toFixed(3));
  show([
    ['share of one model', 'before', 'after good news', 'after bad news'],
    ['linear', ...shares],
  ]);
  const speed = measureSpeed(data);
  show([['of one decision, median', 'reading the text', 'the network'], ['µs', speed.encodeUs.toFixed(0), speed.networkUs.toFixed(1)]]); // prettier-ignore
  const chosen = mmlu.rows.find(({ name }) => name === mmlu.winner)!;
  return {
    router_gain: chosen.area,
    router_gain_ci_low: chosen.byRequest.low,
    intent_accuracy: intents.rows.find(({ name }) => name === intents.winner)!.accuracy,
    mmlu,
    otherSplits,
    alpaca,
    intents,
    news,
    speed,
  };
}

const fixed = (value: number, digits = 4): string => (Number.isNaN(value) ? '–' : value.toFixed(digits));

/** Rows of a table for `printTable`. */
export function gainTable(title: string, { winner, rows, shuffled }: GainTable): string[][] {
  return [
    [title, 'held-out in training', 'area over random', '95 % by request', '95 % by group', 'of oracle'],
    ...[...rows, shuffled].map(({ name, validation, area, byRequest, byGroup, ofOracle }) => [
      name === winner ? `${name} (chosen)` : name,
      fixed(validation),
      fixed(area),
      `${fixed(byRequest.low)} … ${fixed(byRequest.high)}`,
      `${fixed(byGroup.low)} … ${fixed(byGroup.high)}`,
      fixed(ofOracle, 3),
    ]),
  ];
}

export function intentTable({ winner, rows, shuffled }: IntentTable): string[][] {
  return [
    ['intents', 'validation', 'accuracy', '95 %'],
    ...[...rows, shuffled].map(({ name, validation, accuracy, interval }) => [
      name === winner ? `${name} (chosen)` : name,
      fixed(validation),
      fixed(accuracy),
      `${fixed(interval.low)} … ${fixed(interval.high)}`,
    ]),
  ];
}

export const curveTable = ({ curves }: IntentTable): string[][] => [
  ['feedbacks', ...curves[0]!.points.map(({ numFeedbacks }) => String(numFeedbacks))],
  ...curves.map(({ name, points }) => [name, ...points.map(({ accuracy }) => fixed(accuracy, 3))]),
];
