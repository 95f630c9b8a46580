import { RuvLLMError } from '../../core/errors.ts';
import { createOffPolicyValue } from '../router-training/off-policy.ts';
import { createPropensities, type RatedRoute, toExample } from '../router-training/train-router.ts';
import {
  bestOf,
  type Contestant,
  contestantsOf,
  createConstant,
  fitRouteEncoder,
  foldsOf,
  hullOf,
  selectBest,
  shrink,
  ROUTER_BUCKETS,
} from '../router/index.ts';
import { candidatesOf, FREE } from './held-out-area.ts';
import { type Figure, meanOf, pairedGain } from './retrieval.ts';

export interface OffPolicyTask {
  /** By candidate. */
  readonly names: readonly string[];
  readonly costs: readonly number[];
  readonly seed: number;
  /** Routers to choose from, besides fixed candidates. Default: all of the service. */
  readonly contestants?: readonly Contestant[];
}

export interface PolicyRow {
  readonly name: string;
  readonly cost: number;
  readonly quality: number;
}

/** Estimated quality of routers and fixed choices on requests that one candidate each has answered. */
export interface OffPolicyTable {
  readonly router: PolicyRow;
  /** Each candidate for every request, then a uniformly random one. */
  readonly fixed: readonly PolicyRow[];
  /** The best blind mixture of candidates at the router's cost. */
  readonly blind: PolicyRow;
  /** Router minus each other policy, by name; groups of requests stay together. */
  readonly gains: Readonly<Record<string, Figure>>;
  readonly winners: readonly string[];
  readonly numRequests: number;
}

const NUM_FOLDS = 5;
/** Fewer leave folds of two or three requests. */
export const MIN_RATED = 20;

/** Judges each rated request by a router trained without its conversation; other choices by the doubly robust estimate. */
export function measureOffPolicy(routes: readonly RatedRoute[], task: OffPolicyTask): OffPolicyTable {
  const { names, costs, seed } = task;
  if (routes.length < MIN_RATED || names.length < 2) {
    throw new RuvLLMError(
      'invalid_option',
      `${routes.length} rated requests of ${names.length} candidates; at least ${MIN_RATED} of 2 are required`,
      { data: { numRequests: routes.length, numCandidates: names.length } },
    );
  }
  const candidates = candidatesOf(names);
  const encoder = fitRouteEncoder(routes.map(({ request }) => request), { numBuckets: ROUTER_BUCKETS }); // prettier-ignore
  const propensityOf = createPropensities(routes, candidates.length);
  const examples = routes.map((one) => toExample(one, encoder, names.length, propensityOf(one)));
  const contestants = [
    ...names.map((name, i) => ({ name: `always ${name}`, train: () => createConstant(`always ${name}`, i, names.length) })), // prettier-ignore
    ...(task.contestants ?? contestantsOf({ numCandidates: names.length, numBuckets: ROUTER_BUCKETS, costs })),
  ];
  const folds = foldsOf(examples, NUM_FOLDS, seed);
  const chosen = new Int32Array(examples.length);
  /** By request, then by candidate. */
  const values: number[][] = [];
  const winners: string[] = [];
  for (let fold = 0; fold < NUM_FOLDS; fold++) {
    const train = examples.filter((_, i) => folds[i] !== fold);
    if (train.length === examples.length) continue;
    const { winner, estimator, rule } = selectBest(contestants, train, { candidates, weights: FREE, costs, safeDefault: 0, by: 'utility', seed }); // prettier-ignore
    winners.push(winner);
    const valueOf = createOffPolicyValue(train, candidates, FREE);
    examples.forEach((example, i) => {
      if (folds[i] !== fold) return;
      chosen[i] = bestOf(shrink(estimator.estimate(example.input).qualities, rule.shrinkage), costs);
      values[i] = names.map((_, candidate) => valueOf(example, candidate));
    });
  }
  const routed = values.map((row, i) => row[chosen[i]!]!);
  const routerCost = meanOf(Array.from(chosen, (candidate) => costs[candidate]!));
  const means = names.map((_, candidate) => meanOf(values.map((row) => row[candidate]!)));
  const shares: Readonly<Record<string, readonly number[]>> = {
    ...Object.fromEntries(names.map((name, i) => [`always ${name}`, names.map((_, j) => Number(i === j))])),
    random: names.map(() => 1 / names.length),
    'blind mixture': mixtureAt(means, costs, routerCost),
  };
  const groups = routes.map(({ group }) => group);
  const rows = Object.entries(shares).map(([name, weights]) => {
    const outcome = values.map((row) => dot(row, weights));
    const row = { name, cost: dot(costs, weights), quality: meanOf(outcome) };
    return { row, gain: pairedGain(outcome, routed, groups) };
  });
  return {
    router: { name: 'router', cost: routerCost, quality: meanOf(routed) },
    fixed: rows.slice(0, -1).map(({ row }) => row),
    blind: rows.at(-1)!.row,
    gains: Object.fromEntries(rows.map(({ row, gain }) => [row.name, gain])),
    winners,
    numRequests: routes.length,
  };
}

const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

/** Shares of candidates in the best blind mixture that costs at most `cost`. */
function mixtureAt(means: readonly number[], costs: readonly number[], cost: number): number[] {
  const hull = hullOf(means, costs);
  const at = Math.max(0, hull.findLastIndex((point) => point.cost <= cost)); // prettier-ignore
  const [low, high] = [hull[at]!, hull[at + 1]];
  const share = high === undefined ? 0 : (cost - low.cost) / (high.cost - low.cost);
  const indexOf = (point: typeof low): number => costs.findIndex((one, i) => one === point.cost && means[i] === point.quality); // prettier-ignore
  const shares = means.map(() => 0);
  shares[indexOf(low)]! += 1 - share;
  if (high !== undefined) shares[indexOf(high)]! += share;
  return shares;
}
