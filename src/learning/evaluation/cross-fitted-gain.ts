import {
  type Contestant,
  foldsOf,
  judge,
  type RouteExample,
  type SelectOptions,
  shrink,
  simplestOf,
  splitValidation,
} from '../router/index.ts';
import type { Interval } from './bootstrap.ts';
import {
  candidatesOf,
  FREE,
  type GainRow,
  type HeldOut,
  intervalsOf,
  prepareArea,
  prepareBudget,
  shuffleOutcomes,
} from './held-out-area.ts';

const NUM_FOLDS = 5;
/** Fixed before any fold was examined. */
const DEFAULT_SEED = 0;
/** Between the cheapest candidate and the dearest. */
const BUDGETS = [0.25, 0.5, 0.75];
const NUM_RESAMPLES = 400;
/** Resamples of the difference to shuffled outcomes: each takes as many curves as there are shuffles. */
const NUM_PAIRED = 150;
/** The simple routers that the chosen one must not lose to. */
const BASELINES = ['prompt length', 'k-NN', 'logistic'];

/** Candidates, their costs and the routers to compare. */
export interface GainTask {
  readonly title: string;
  readonly names: readonly string[];
  readonly costs: readonly number[];
  /** Simplest first. */
  readonly contestants: readonly Contestant[];
  readonly numShuffles: number;
  /** Seed of folds and shuffles. Default 0. */
  readonly seed?: number;
}

/** The chosen router and the best blind mixture of candidates at the same cost. */
export interface BudgetRow {
  /** 0: the cost of the cheapest candidate, 1: of the dearest. */
  readonly share: number;
  readonly cost: number;
  readonly quality: number;
  readonly blind: number;
  /** Of quality − blind. */
  readonly byCluster: Interval;
}

/** A policy trained on shuffled outcomes, many times. */
export interface Control {
  readonly name: string;
  readonly numShuffles: number;
  readonly mean: number;
  readonly least: number;
  readonly most: number;
  /** Real minus the mean of the shuffled, on the same resamples. */
  readonly difference: number;
  readonly byRequest: Interval;
  readonly byCluster: Interval;
}

export interface GainTable {
  readonly title: string;
  /** By fold. */
  readonly winners: readonly string[];
  /** `chosen` is the first: in every fold the contestant that the service would take, judged inside the training part. */
  readonly rows: readonly GainRow[];
  readonly controls: readonly Control[];
  /** The chosen one minus a simple router, on the same resamples. */
  readonly versus: readonly { readonly name: string; readonly difference: number; readonly byRequest: Interval }[];
  /** Each candidate for every request: the ends of random routing. */
  readonly fixed: readonly { readonly name: string; readonly quality: number; readonly cost: number }[];
  readonly atBudgets: readonly BudgetRow[];
  readonly numTest: number;
}

/**
 * A gain is claimed if its interval and that over shuffled outcomes are above 0, by request and by cluster, and no
 * shuffle gained as much.
 */
export function claimOf({ rows, controls }: GainTable): { readonly isClaimed: boolean; readonly why: string } {
  const [chosen, control] = [rows[0]!, controls[0]];
  if (control === undefined) return { isClaimed: false, why: 'there were no shuffles' };
  const most = Math.max(...controls.map((one) => one.most));
  const lows: readonly [string, number][] = [
    ['the interval by request', chosen.byRequest.low],
    ['the interval by cluster', chosen.byCluster.low],
    ['the difference to shuffled outcomes by request', control.byRequest.low],
    ['the difference to shuffled outcomes by cluster', control.byCluster.low],
  ];
  const below = lows.find(([, low]) => low <= 0);
  if (below !== undefined) return { isClaimed: false, why: `${below[0]} starts at ${below[1].toFixed(4)}` };
  if (chosen.area <= most) return { isClaimed: false, why: `a shuffle gained ${most.toFixed(4)}` };
  return { isClaimed: true, why: `all intervals start above 0, and the best shuffle gained ${most.toFixed(4)}` };
}

type Beliefs = Map<string, Float64Array[]>;

/** No training: the longer the prompt, the dearer of two candidates. */
const byLength = (costs: readonly number[], { input }: RouteExample): Float64Array =>
  Float64Array.from(costs, (cost) => (cost * input.numTokens) / Math.max(...costs));

/** `examples` are encoded once, with directions and scales of all texts and no outcome; `clusters` by example. */
export function measureCrossFitted(
  task: GainTask,
  examples: readonly RouteExample[],
  clusters: readonly string[],
  log: (line: string) => void,
): GainTable {
  const { seed = DEFAULT_SEED } = task;
  const folds = foldsOf(examples, NUM_FOLDS, seed);
  const options: SelectOptions = { candidates: candidatesOf(task.names), weights: FREE, costs: task.costs, safeDefault: 0, by: 'area', numFolds: 3, seed: 1 }; // prettier-ignore
  const { contestants } = task;
  const [beliefs, validations]: [Beliefs, Map<string, number[]>] = [new Map(), new Map()];
  const add = <T>(map: Map<string, T[]>, name: string, ...values: T[]): void => void map.set(name, [...(map.get(name) ?? []), ...values]); // prettier-ignore
  const winners: string[] = [];
  const order: number[] = [];
  for (let fold = 0; fold < NUM_FOLDS; fold++) {
    const heldOut = examples.flatMap((_, i) => (folds[i] === fold ? [i] : []));
    const test = heldOut.map((i) => examples[i]!);
    const train = examples.filter((_, i) => folds[i] !== fold);
    const contests = contestants.map((contestant) => {
      const contest = judge(contestant, train, options);
      log(
        `${task.title}, fold ${fold + 1} of ${NUM_FOLDS}: ${contestant.name} ${contest.heldOut.toFixed(4)} in training`,
      );
      return contest;
    });
    const winner = simplestOf(contests).name;
    winners.push(winner);
    order.push(...heldOut);
    const believe = (
      contestant: Contestant,
      shrinkage: Parameters<typeof shrink>[1],
      examples: readonly RouteExample[],
    ): Float64Array[] => {
      // prettier-ignore
      const estimator = contestant.train(...splitValidation(examples, 2));
      return test.map(({ input }) => shrink(estimator.estimate(input).qualities, shrinkage).slice());
    };
    contestants.forEach((contestant, i) => {
      const { heldOut, rule } = contests[i]!;
      const estimates = believe(contestant, rule.shrinkage, train);
      add(beliefs, contestant.name, ...estimates);
      add(validations, contestant.name, heldOut);
      if (contestant.name !== winner) return;
      add(beliefs, 'chosen', ...estimates);
      add(validations, 'chosen', heldOut);
      for (let i = 0; i < task.numShuffles; i++)
        add(beliefs, `chosen, shuffle ${i}`, ...believe(contestant, rule.shrinkage, shuffleOutcomes(train, 1000 * seed + 100 + i))); // prettier-ignore
    });
    if (task.costs.length === 2) add(beliefs, 'prompt length', ...test.map((one) => byLength(task.costs, one)));
  }
  const heldOut: HeldOut = {
    outcomes: order.map((i) => examples[i]!.outcomes),
    folds: order.map((i) => folds[i]!),
    clusters: order.map((i) => clusters[i]!),
    costs: task.costs,
  };
  add(beliefs, 'oracle', ...heldOut.outcomes.map((outcomes) => Float64Array.from(outcomes)));
  const oracle = prepareArea(heldOut, beliefs.get('oracle')!)();
  const rowFor = (name: string): GainRow => {
    const values = validations.get(name) ?? [NaN];
    const area = prepareArea(heldOut, beliefs.get(name)!);
    const validation = values.reduce((sum, value) => sum + value, 0) / values.length;
    return { name, validation, area: area(), ...intervalsOf(heldOut, area, NUM_RESAMPLES), ofOracle: area() / oracle };
  };
  return {
    title: task.title,
    winners,
    rows: ['chosen', 'prompt length', ...contestants.map(({ name }) => name), 'oracle'].filter((name) => beliefs.has(name)).map(rowFor), // prettier-ignore
    controls: task.numShuffles === 0 ? [] : [controlOf('chosen', task.numShuffles, heldOut, beliefs)],
    versus: BASELINES.filter((name) => beliefs.has(name)).map((name) => versusOf(name, heldOut, beliefs)),
    fixed: task.names.map((name, i) => ({
      name,
      quality: examples.reduce((sum, { outcomes }) => sum + outcomes[i]!, 0) / examples.length,
      cost: task.costs[i]!,
    })),
    atBudgets: BUDGETS.map((share) => budgetRow(share, heldOut, beliefs.get('chosen')!)),
    numTest: order.length,
  };
}

function budgetRow(share: number, heldOut: HeldOut, estimates: readonly Float64Array[]): BudgetRow {
  const { quality, blind } = prepareBudget(heldOut, estimates, share);
  const [low, high] = [Math.min(...heldOut.costs), Math.max(...heldOut.costs)];
  const gain = (counts?: Float64Array): number => quality(counts) - blind(counts);
  const { byCluster } = intervalsOf(heldOut, gain, NUM_PAIRED);
  return { share, cost: low + (high - low) * share, quality: quality(), blind: blind(), byCluster };
}

function versusOf(name: string, heldOut: HeldOut, beliefs: Beliefs): GainTable['versus'][number] {
  const [chosen, other] = [prepareArea(heldOut, beliefs.get('chosen')!), prepareArea(heldOut, beliefs.get(name)!)];
  const difference = (counts?: Float64Array): number => chosen(counts) - other(counts);
  return { name, difference: difference(), byRequest: intervalsOf(heldOut, difference, NUM_PAIRED).byRequest };
}

function controlOf(name: string, numShuffles: number, heldOut: HeldOut, beliefs: Beliefs): Control {
  const real = prepareArea(heldOut, beliefs.get(name)!);
  const shuffled = Array.from({ length: numShuffles }, (_, seed) => prepareArea(heldOut, beliefs.get(`${name}, shuffle ${seed}`)!)); // prettier-ignore
  const areas = shuffled.map((area) => area());
  const meanOf = (counts?: Float64Array): number => shuffled.reduce((sum, area) => sum + area(counts), 0) / numShuffles;
  const difference = (counts?: Float64Array): number => real(counts) - meanOf(counts);
  return {
    name,
    numShuffles,
    mean: meanOf(),
    least: Math.min(...areas),
    most: Math.max(...areas),
    difference: difference(),
    ...intervalsOf(heldOut, difference, NUM_PAIRED),
  };
}
