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

/** A request somebody rated, and who had answered it. */
export interface RatedRoute {
  readonly request: RouteRequest;
  readonly candidate: number;
  /** 0 to 1. */
  readonly quality: number;
  /** With which the candidate was drawn; null: somebody asked for it by name. */
  readonly propensity: number | null;
  /** What must not be on both sides of a split. */
  readonly group: string;
}

/** Plain data: it crosses a thread. */
export interface RouterJob {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  readonly safeDefault: number;
  readonly minConfidence: number;
  /** The oldest first. */
  readonly examples: readonly RatedRoute[];
  /** The stored text of what serves; null: the safe default does. */
  readonly serving: string | null;
  readonly seed: number;
}

export interface RouterOutcome {
  /** What is let serve: the new router, the safe default in place of a router that has become worse, or what serves already. */
  readonly next: 'router' | 'default' | 'unchanged';
  readonly gate: GateDecision;
  /** The new router; only where it is let serve. */
  readonly text: string | null;
  readonly winner: string;
  /** Mean utility on groups each was not trained on, best first. */
  readonly contests: readonly { readonly name: string; readonly heldOut: number }[];
}

/** Fewer say nothing that an interval would let through. */
export const MIN_ROUTER_EXAMPLES = 20;
/** More would take longer than a loop has. */
export const MAX_ROUTER_EXAMPLES = 5000;
/** Of the examples, the newest: what requests are like now. */
const HELD_OUT_SHARE = 0.25;
/** Collisions of terms cost less than a router that takes long to load. */
const NUM_BUCKETS = 2048;
/** The values are weighted by up to 20: one of them says nothing about harm. */
const RULES = { ...GATE_RULES, minExamples: 5, maxRiseOfOne: Infinity };

/** Whether a router was trained for these candidates, in this order; prices may differ. */
export function isRouterFor(router: Router, candidates: readonly Candidate[]): boolean {
  const { candidates: own } = router.rule;
  return own.length === candidates.length && own.every(({ id }, i) => id === candidates[i]!.id);
}

/** Chooses among all ways to route on the older part, and lets the best serve only if it surely beats what serves on the newest. */
export const trainRouter = (job: RouterJob, sha256: Sha256): RouterOutcome => runSteps(trainRouterSteps(job, sha256));

/** The same in pieces of one training each. */
export function* trainRouterSteps(job: RouterJob, sha256: Sha256): Steps<RouterOutcome> {
  const { candidates, weights, safeDefault, minConfidence, seed } = job;
  if (job.examples.length < MIN_ROUTER_EXAMPLES || job.examples.length > MAX_ROUTER_EXAMPLES)
    throw new RuvLLMError(
      'invalid_option',
      `a router is trained on ${MIN_ROUTER_EXAMPLES} to ${MAX_ROUTER_EXAMPLES} rated requests, got ${job.examples.length}`,
    );
  const numHeldOut = Math.ceil(job.examples.length * HELD_OUT_SHARE);
  const newest = job.examples.slice(-numHeldOut);
  const seenLater = new Set(newest.map(({ group }) => group));
  const older = job.examples.slice(0, -numHeldOut).filter(({ group }) => !seenLater.has(group));
  const nothing = { text: null, winner: '', contests: [] };
  if (older.length < MIN_ROUTER_EXAMPLES / 2) {
    const reason = `${older.length} rated requests of other conversations than the newest are too few to train on`;
    return { ...nothing, next: 'unchanged', gate: { isAccepted: false, reason, metrics: {} } };
  }
  const encoder = fitRouteEncoder(older.map(({ request }) => request), { numBuckets: NUM_BUCKETS, seed }); // prettier-ignore
  const propensityOf = createPropensities(job);
  const toExamples = (some: readonly RatedRoute[], by: RouteEncoder): TriedExample[] =>
    some.map((one) => toExample(one, by.encode(one.request), candidates.length, propensityOf(one)));
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
  // A router that has become worse than none does not stay for want of a better one.
  const withdrawal =
    serving === null ? null : decidePromotion({ before, after: lossesOf(() => safeDefault) }, NOTHING_ELSE, RULES);
  if (withdrawal?.isAccepted) return { ...shared, next: 'default', gate: withdrawal, text: null };
  return { ...shared, next: 'unchanged', gate, text: null };
}

const NOTHING_ELSE = { before: [], after: [] };

/** Null: it judges in a way that was removed. Anything else that cannot be read is an error. */
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

/** Always one of them, the safe default first, then everything that looks at the request. */
function contestants({ candidates, safeDefault }: RouterJob): Contestant[] {
  const order = [safeDefault, ...candidates.keys()].filter((one, i, all) => all.indexOf(one) === i);
  const constants = order.map((one): Contestant => {
    const name = `always ${candidates[one]!.id}`;
    return { name, train: () => createConstant(name, one, candidates.length) };
  });
  return [...constants, ...contestantsOf({ numCandidates: candidates.length, numBuckets: NUM_BUCKETS })];
}

/** Where people chose by name, each candidate's share of those requests is how likely it was. */
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
