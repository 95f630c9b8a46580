import { RuvLLMError } from '../../core/errors.ts';
import { decidePromotion, GATE_RULES, type GateDecision } from '../gate/gate.ts';
import {
  type Candidate,
  type Contestant,
  contestantsOf,
  createConstant,
  createRouter,
  fitRouteEncoder,
  loadRouter,
  type Router,
  type RouteEncoder,
  type RouteInput,
  type RouteRequest,
  saveRouter,
  runSteps,
  selectBestSteps,
  type Sha256,
  type Steps,
  type UtilityWeights,
} from '../router/index.ts';
import { createOffPolicyValue, type TriedExample } from './off-policy.ts';

/** A rated request and the candidate that answered it. */
export interface RatedRoute {
  readonly request: RouteRequest;
  readonly candidate: number;
  /** 0 to 1. */
  readonly quality: number;
  /** Probability with which the candidate was drawn; null: the request named it. */
  readonly propensity: number | null;
  /** Conversation; never on both sides of a split. */
  readonly group: string;
}

/** Plain data, because it is sent to a worker thread. */
export interface RouterJob {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  readonly safeDefault: number;
  readonly minConfidence: number;
  /** Oldest first. */
  readonly examples: readonly RatedRoute[];
  /** Text of the active router; null: the safe default serves. */
  readonly serving: string | null;
  readonly seed: number;
}

export interface RouterOutcome {
  /** `default`: the safe default replaces a router that has become worse. */
  readonly next: 'router' | 'default' | 'unchanged';
  readonly gate: GateDecision;
  /** The new router, if accepted. */
  readonly text: string | null;
  readonly winner: string;
  /** Mean utility on held-out groups, best first. */
  readonly contests: readonly { readonly name: string; readonly heldOut: number }[];
}

/** With fewer, no confidence interval is narrow enough. */
export const MIN_ROUTER_EXAMPLES = 20;
/** Keeps training within the time limit of a loop. */
export const MAX_ROUTER_EXAMPLES = 5000;
/** The newest examples, which are most like coming requests. */
const HELD_OUT_SHARE = 0.25;
/** Term collisions cost less than the load time of a larger router. */
const NUM_BUCKETS = 2048;
/** Values are weighted by up to 20, so the rise of a single one is no sign of harm. */
const RULES = { ...GATE_RULES, minExamples: 5, maxRiseOfOne: Infinity };

/** Whether a router was trained for these candidates in this order; prices may differ. */
export function isRouterFor(router: Router, candidates: readonly Candidate[]): boolean {
  const { candidates: trained } = router.rule;
  return trained.length === candidates.length && trained.every(({ id }, i) => id === candidates[i]!.id);
}

/** Selects the best estimator on the older examples; it replaces the active router only if it is surely better on the newest. */
export const trainRouter = (job: RouterJob, sha256: Sha256): RouterOutcome => runSteps(trainRouterSteps(job, sha256));

/** Yields before each training. */
export function* trainRouterSteps(job: RouterJob, sha256: Sha256): Steps<RouterOutcome> {
  const { candidates, weights, safeDefault, minConfidence, seed } = job;
  if (job.examples.length < MIN_ROUTER_EXAMPLES || job.examples.length > MAX_ROUTER_EXAMPLES)
    throw new RuvLLMError(
      'invalid_option',
      `a router is trained on ${MIN_ROUTER_EXAMPLES} to ${MAX_ROUTER_EXAMPLES} rated requests, got ${job.examples.length}`,
    );
  const numHeldOut = Math.ceil(job.examples.length * HELD_OUT_SHARE);
  const newest = job.examples.slice(-numHeldOut);
  const heldOutGroups = new Set(newest.map(({ group }) => group));
  const older = job.examples.slice(0, -numHeldOut).filter(({ group }) => !heldOutGroups.has(group));
  if (older.length < MIN_ROUTER_EXAMPLES / 2) {
    const reason = `${older.length} rated requests outside the held-out conversations; router training requires ${MIN_ROUTER_EXAMPLES / 2}`;
    const gate = { isAccepted: false, reason, metrics: {} };
    return { text: null, winner: '', contests: [], next: 'unchanged', gate };
  }
  const encoder = fitRouteEncoder(older.map(({ request }) => request), { numBuckets: NUM_BUCKETS, seed }); // prettier-ignore
  const propensityOf = createPropensities(job);
  const toExamples = (routes: readonly RatedRoute[], by: RouteEncoder): TriedExample[] =>
    routes.map((one) => toExample(one, by.encode(one.request), candidates.length, propensityOf(one)));
  const train = toExamples(older, encoder);
  const heldOut = toExamples(newest, encoder);
  yield;
  const selection = yield* selectBestSteps(contestants(job), train, {
    candidates,
    weights,
    costs: candidates.map(({ pricePerToken }) => pricePerToken),
    safeDefault,
    by: 'utility',
    seed,
  });
  const router = createRouter(encoder, selection.estimator, { ...selection.rule, minConfidence });
  const valueOf = createOffPolicyValue(train, candidates, weights);
  const lossesOf = (choose: (at: number) => number): number[] => heldOut.map((one, i) => -valueOf(one, choose(i)));
  const serving = readServing(job, sha256);
  const before = lossesOf(
    serving === null
      ? () => safeDefault
      : (i) => serving.policy.decide(serving.encoder.encode(newest[i]!.request)).candidate,
  );
  const after = lossesOf((i) => router.policy.decide(heldOut[i]!.input).candidate);
  const contests = selection.contests.map(({ name, heldOut: value }) => ({ name, heldOut: value }));
  const shared = { winner: selection.winner, contests };
  const gate = decidePromotion({ before, after }, NOTHING_ELSE, RULES);
  if (gate.isAccepted) return { ...shared, next: 'router', gate, text: saveRouter(router, sha256) };
  // A router that has become worse than the safe default is withdrawn even if no better one is found.
  const withdrawal =
    serving === null ? null : decidePromotion({ before, after: lossesOf(() => safeDefault) }, NOTHING_ELSE, RULES);
  if (withdrawal?.isAccepted) return { ...shared, next: 'default', gate: withdrawal, text: null };
  return { ...shared, next: 'unchanged', gate, text: null };
}

const NOTHING_ELSE = { before: [], after: [] };

/** Null if the kind of estimator is no longer supported. Throws for any other unreadable text. */
export function loadSupported(text: string, sha256: Sha256): Router | null {
  try {
    return loadRouter(text, sha256);
  } catch (error) {
    if (error instanceof RuvLLMError && error.code === 'unsupported') return null;
    throw error;
  }
}

function readServing({ serving, candidates, weights }: RouterJob, sha256: Sha256): Router | null {
  const router = serving === null ? null : loadSupported(serving, sha256);
  if (router === null || !isRouterFor(router, candidates)) return null;
  return createRouter(router.encoder, router.estimator, { ...router.rule, candidates, weights });
}

/** Each fixed candidate, the safe default first, then all estimators that read the request. */
function contestants({ candidates, safeDefault }: RouterJob): Contestant[] {
  const order = [safeDefault, ...candidates.keys()].filter((one, i, all) => all.indexOf(one) === i);
  const constants = order.map((one): Contestant => {
    const name = `always ${candidates[one]!.id}`;
    return { name, train: () => createConstant(name, one, candidates.length) };
  });
  return [...constants, ...contestantsOf({ numCandidates: candidates.length, numBuckets: NUM_BUCKETS })];
}

/** If requests named their candidate, its propensity is its share of those requests. */
function createPropensities({ examples, candidates }: RouterJob): (one: RatedRoute) => number {
  const named = new Float64Array(candidates.length);
  for (const { candidate, propensity } of examples) if (propensity === null) named[candidate]! += 1;
  const total = named.reduce((sum, count) => sum + count, 0);
  return ({ candidate, propensity }) => propensity ?? named[candidate]! / total;
}

function toExample(
  { candidate, quality, group }: RatedRoute,
  input: RouteInput,
  numCandidates: number,
  propensity: number,
): TriedExample {
  const outcomes = new Float32Array(numCandidates).fill(NaN);
  outcomes[candidate] = quality;
  const propensities = new Float32Array(numCandidates).fill(1);
  propensities[candidate] = propensity;
  return { input, outcomes, propensities, group, tried: candidate };
}
