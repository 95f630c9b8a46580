import { RuvLLMError } from '../../core/errors.ts';
import { foldsOf } from '../router/folds.ts';
import { decidePromotion, GATE_RULES, type GateDecision } from '../gate/gate.ts';
import {
  type Candidate,
  type Contestant,
  type Contest,
  contestantsOf,
  createConstant,
  createRouter,
  fitFamiliarity,
  fitRouteEncoder,
  loadRouter,
  type Router,
  type RouteEncoder,
  type RouteRequest,
  ROUTER_BUCKETS,
  saveRouter,
  runSteps,
  selectBestSteps,
  type Selection,
  type Sha256,
  type Steps,
  type UtilityWeights,
  withoutVectors,
} from '../router/index.ts';
import { createOffPolicyValue, type TriedExample } from './off-policy.ts';
import type { RatedRoute } from './rated-routes.ts';
import { boundPeers, type PeerRoutes, type PeerVerdict, screenPeersSteps } from './screen-peers.ts';

export type { RatedRoute };

/** Plain data, because it is sent to a worker thread. */
export interface RouterJob {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  readonly safeDefault: number;
  readonly minConfidence: number;
  /** Oldest first. */
  readonly examples: readonly RatedRoute[];
  /** The space of the requests' sentence vectors; null: they have none. */
  readonly space: string | null;
  /** Time that embedding a request takes. */
  readonly vectorMs: number;
  /** Text of the active router; null: the safe default serves. */
  readonly serving: string | null;
  readonly seed: number;
  /** Rated requests of other nodes. Default none. */
  readonly peers?: readonly PeerRoutes[];
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
  /** Whether the examples of each peer were used. */
  readonly peers: readonly PeerVerdict[];
}

/** With fewer, no confidence interval is narrow enough. */
export const MIN_ROUTER_EXAMPLES = 20;
/** Keeps training within the time limit of a loop. */
export const MAX_ROUTER_EXAMPLES = 5000;
/** The newest examples, which are most like coming requests. */
const HELD_OUT_SHARE = 0.25;
/** Of the older examples, each judged by a router trained without it. */
const NUM_FOLDS = 3;
/** Values are weighted by up to 20, so the rise of a single one is no sign of harm. */
const RULES = { ...GATE_RULES, minExamples: 5, maxRiseOfOne: Infinity };

/** Whether a router was trained for these candidates in this order; prices may differ. */
export function isRouterFor(router: Router, candidates: readonly Candidate[]): boolean {
  const { candidates: trained } = router.rule;
  return trained.length === candidates.length && trained.every(({ id }, i) => id === candidates[i]!.id);
}

/** A router replaces the active one only if it is surely better on conversations it was neither selected nor trained on. */
export const trainRouter = (job: RouterJob, sha256: Sha256): RouterOutcome => runSteps(trainRouterSteps(job, sha256));

interface Part {
  readonly train: readonly RatedRoute[];
  readonly heldOut: readonly RatedRoute[];
}

/** The newest requests first. An active router has seen the older ones, so only the newest compare it with another. */
function partsOf({ serving, seed }: RouterJob, older: readonly RatedRoute[], newest: readonly RatedRoute[]): Part[] {
  const first = { train: older, heldOut: newest };
  if (serving !== null) return [first];
  const folds = foldsOf(older, NUM_FOLDS, seed);
  const others = Array.from({ length: NUM_FOLDS }, (_, fold) => ({
    train: [...older.filter((_, i) => folds[i] !== fold), ...newest],
    heldOut: older.filter((_, i) => folds[i] === fold),
  }));
  return [
    first,
    ...others.filter(({ train, heldOut }) => train.length >= MIN_ROUTER_EXAMPLES / 2 && heldOut.length > 0),
  ];
}

/** Yields before each training. */
export function* trainRouterSteps(job: RouterJob, sha256: Sha256): Steps<RouterOutcome> {
  const { candidates, weights, safeDefault } = job;
  if (job.examples.length < MIN_ROUTER_EXAMPLES || job.examples.length > MAX_ROUTER_EXAMPLES)
    throw new RuvLLMError(
      'invalid_option',
      `a router is trained on ${MIN_ROUTER_EXAMPLES} to ${MAX_ROUTER_EXAMPLES} rated requests, got ${job.examples.length}`,
    );
  const numNewest = Math.ceil(job.examples.length * HELD_OUT_SHARE);
  const newest = job.examples.slice(-numNewest);
  const newestGroups = new Set(newest.map(({ group }) => group));
  const older = job.examples.slice(0, -numNewest).filter(({ group }) => !newestGroups.has(group));
  if (older.length < MIN_ROUTER_EXAMPLES / 2) {
    const reason = `${older.length} rated requests outside the held-out conversations; router training requires ${MIN_ROUTER_EXAMPLES / 2}`;
    const gate = { isAccepted: false, reason, metrics: {} };
    return { text: null, winner: '', contests: [], next: 'unchanged', gate, peers: [] };
  }
  const { peers, verdicts } = yield* choosePeers(job, older);
  const encoder = fitEncoder(job, peers);
  const propensityOf = createPropensities(job.examples, candidates.length);
  const toExamples = (routes: readonly RatedRoute[]): TriedExample[] =>
    routes.map((one) => toExample(one, encoder, candidates.length, propensityOf(one)));
  const foreign = peers.flatMap(({ examples }) => encodePeer(examples, encoder, candidates.length));
  const serving = readServing(job, sha256);
  const parts = partsOf(job, older, newest);
  const fold: FoldContext = { job, encoder, older, newest, foreign, toExamples };
  const [before, after, byDefault]: number[][] = [[], [], []];
  let judged: Selection | null = null;
  for (const part of parts) {
    yield;
    const train = toExamples(part.train);
    const { router, selection } = yield* fitSteps(job, encoder, [...train, ...foreign]);
    judged ??= selection;
    const valueOf = createOffPolicyValue(train, candidates, weights);
    toExamples(part.heldOut).forEach((one, i) => {
      before!.push(-valueOf(one, serving === null ? safeDefault : chosenBy(serving, part.heldOut[i]!.request, job)));
      after!.push(-valueOf(one, router.policy.decide(one.input).candidate));
      byDefault!.push(-valueOf(one, safeDefault));
    });
  }
  const shared = { winner: judged!.winner, contests: judged!.contests.map(toPlain), peers: verdicts };
  const newestLosses = { before: before!.slice(0, numNewest), after: after!.slice(0, numNewest) };
  const firstGate = withRecent(decidePromotion({ before: before!, after: after! }, NOTHING_ELSE, RULES), newestLosses);
  // Surely worse than the active router: then it does not matter how much the peers help.
  const isWorse = (firstGate.metrics['held_out_low'] ?? 0) > 0;
  const needsMore = !firstGate.isAccepted && !isWorse && serving !== null && foreign.length > 0;
  const gate = needsMore ? yield* comparePeers(fold) : firstGate;
  if (gate.isAccepted) {
    const { router, selection } = yield* fitSteps(job, encoder, [...toExamples(job.examples), ...foreign]);
    const { winner } = selection;
    const contests = selection.contests.map(toPlain);
    if (winner !== fixedName(job, safeDefault) || serving !== null)
      return { winner, contests, peers: verdicts, next: 'router', gate, text: saveRouter(router, sha256) };
    const reason = `on all rated requests ${describe(contests)}: none is surely better than the safe default`;
    return { winner, contests, peers: verdicts, next: 'unchanged', gate: { ...gate, isAccepted: false, reason }, text: null }; // prettier-ignore
  }
  // A router that has become worse than the safe default is withdrawn even if no better one is found.
  const withdrawal = serving === null ? null : decidePromotion({ before: before!, after: byDefault! }, NOTHING_ELSE, RULES); // prettier-ignore
  if (withdrawal?.isAccepted) return { ...shared, next: 'default', gate: withdrawal, text: null };
  const reason = `${gate.reason}; mean utility on held-out conversations: ${describe(shared.contests)}`;
  return { ...shared, next: 'unchanged', gate: { ...gate, reason }, text: null };
}

interface FoldContext {
  readonly job: RouterJob;
  readonly encoder: RouteEncoder;
  readonly older: readonly RatedRoute[];
  readonly newest: readonly RatedRoute[];
  readonly foreign: readonly TriedExample[];
  toExamples(routes: readonly RatedRoute[]): TriedExample[];
}

/**
 * Whether peers surely help: routers with and without their examples on all own conversations, none of which either has seen. The active
 * router may have seen all of them, so that a comparison with it says little about other requests.
 */
function* comparePeers({ job, encoder, older, newest, foreign, toExamples }: FoldContext): Steps<GateDecision> {
  const [without, including]: number[][] = [[], []];
  for (const part of partsOf({ ...job, serving: null }, older, newest)) {
    const train = toExamples(part.train);
    const valueOf = createOffPolicyValue(train, job.candidates, job.weights);
    const heldOut = toExamples(part.heldOut);
    for (const [examples, losses] of [
      [train, without!],
      [[...train, ...foreign], including!],
    ] as const) {
      // prettier-ignore
      yield;
      const { router } = yield* fitSteps(job, encoder, examples);
      for (const one of heldOut) losses.push(-valueOf(one, router.policy.decide(one.input).candidate));
    }
  }
  const promotion = decidePromotion({ before: without!, after: including! }, NOTHING_ELSE, RULES);
  const { length } = newest;
  const gate = withRecent(promotion, { before: without!.slice(0, length), after: including!.slice(0, length) });
  return { ...gate, reason: `compared without the ratings of peers, ${gate.reason}` };
}

const toPlain = ({ name, heldOut }: Contest): RouterOutcome['contests'][number] => ({ name, heldOut });
const describe = (contests: RouterOutcome['contests']): string =>
  contests.map(({ name, heldOut }) => `${name} ${heldOut.toFixed(3)}`).join(', ');

/** Rejects a router that is better on all held-out requests but worse on the newest, which are most like coming ones. */
function withRecent(gate: GateDecision, { before, after }: { before: number[]; after: number[] }): GateDecision {
  const rise = after.reduce((sum, loss, i) => sum + loss - before[i]!, 0) / after.length;
  if (!gate.isAccepted || rise <= 0) return gate;
  return { ...gate, isAccepted: false, reason: `the loss of the newest ${after.length} requests rises by ${rise.toFixed(4)}` }; // prettier-ignore
}

/** Selects an estimator and trains it on all examples. */
function* fitSteps(
  job: RouterJob,
  encoder: RouteEncoder,
  examples: readonly TriedExample[],
): Steps<{ readonly router: Router; readonly selection: Selection }> {
  const { candidates, weights, safeDefault, minConfidence, vectorMs, seed } = job;
  const all = contestants(job);
  const selection = yield* selectBestSteps(all, examples, {
    candidates,
    weights,
    costs: candidates.map(({ pricePerToken }) => pricePerToken),
    safeDefault,
    by: 'utility',
    vectorPenalty: (weights.perSecond * vectorMs) / 1000,
    seed,
  });
  const needsVector = all.find(({ name }) => name === selection.winner)!.needsVector ?? false;
  const familiarity = needsVector ? fitFamiliarity(examples, seed) : null;
  const rule = { ...selection.rule, minConfidence, familiarity };
  return {
    router: createRouter(needsVector ? encoder : withoutVectors(encoder), selection.estimator, rule),
    selection,
  };
}

/** A router whose vectors are missing leaves the request to the safe default. */
function chosenBy({ encoder, policy }: Router, request: RouteRequest, { space, safeDefault }: RouterJob): number {
  if (encoder.space !== null && (encoder.space !== space || request.vector === undefined)) return safeDefault;
  return policy.decide(encoder.encode(request)).candidate;
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

const fixedName = ({ candidates }: RouterJob, candidate: number): string => `always ${candidates[candidate]!.id}`;

/** Each fixed candidate, the safe default first, then all estimators that read the request. */
function contestants(job: RouterJob): Contestant[] {
  const { candidates, safeDefault, space } = job;
  const order = [safeDefault, ...candidates.keys()].filter((one, i, all) => all.indexOf(one) === i);
  const constants = order.map((one): Contestant => {
    const name = fixedName(job, one);
    return { name, train: () => createConstant(name, one, candidates.length) };
  });
  const shape = { numCandidates: candidates.length, numBuckets: ROUTER_BUCKETS, hasVectors: space !== null };
  return [...constants, ...contestantsOf({ ...shape, costs: orderOf(candidates) })];
}

/** Of candidates of one price, the slower one is taken for the dearer. */
function orderOf(candidates: readonly Candidate[]): number[] {
  const isPriced = candidates.some(({ pricePerToken }) => pricePerToken > 0);
  return candidates.map(({ pricePerToken, latencyMs }) => (isPriced ? pricePerToken : latencyMs));
}

/** If requests named their candidate, its propensity is its share of those requests. */
export function createPropensities(
  examples: readonly RatedRoute[],
  numCandidates: number,
): (one: RatedRoute) => number {
  const named = new Float64Array(numCandidates);
  for (const { candidate, propensity } of examples) if (propensity === null) named[candidate]! += 1;
  const total = named.reduce((sum, count) => sum + count, 0);
  return ({ candidate, propensity }) => propensity ?? named[candidate]! / total;
}

function fitEncoder({ examples, space, seed }: RouterJob, peers: readonly PeerRoutes[]): RouteEncoder {
  const vector = space === null ? 0 : (examples[0]!.request.vector?.length ?? 0);
  const requests = [...examples, ...peers.flatMap((peer) => peer.examples)].map(({ request }) => request);
  return fitRouteEncoder(requests, { numBuckets: ROUTER_BUCKETS, vector, seed }, space);
}

function encodePeer(routes: readonly RatedRoute[], encoder: RouteEncoder, numCandidates: number): TriedExample[] {
  const propensityOf = createPropensities(routes, numCandidates);
  return routes.map((one) => toExample(one, encoder, numCandidates, propensityOf(one)));
}

/** The peers whose examples do not worsen estimates of this node's own ratings. */
function* choosePeers(
  job: RouterJob,
  older: readonly RatedRoute[],
): Steps<{ readonly peers: readonly PeerRoutes[]; readonly verdicts: readonly PeerVerdict[] }> {
  const width = job.space === null ? null : job.examples[0]!.request.vector?.length;
  // A vector of another width would stop the training of everybody's examples.
  const fitting = (job.peers ?? []).map(({ peer, examples }) => ({
    peer,
    examples: examples.filter(({ request }) => width === null || request.vector?.length === width),
  }));
  const bounded = boundPeers(fitting, job.examples, MAX_ROUTER_EXAMPLES - job.examples.length);
  if (bounded.length === 0) return { peers: [], verdicts: [] };
  const { candidates, space, seed } = job;
  const encoder = fitEncoder(job, bounded);
  const propensityOf = createPropensities(job.examples, candidates.length);
  const verdicts = yield* screenPeersSteps(
    older.map((one) => toExample(one, encoder, candidates.length, propensityOf(one))),
    bounded.map(({ peer, examples }) => ({ peer, examples: encodePeer(examples, encoder, candidates.length) })),
    { numCandidates: candidates.length, hasVectors: space !== null, seed },
  );
  return { peers: bounded.filter((_, i) => verdicts[i]!.isUsed), verdicts };
}

export function toExample(
  { request, candidate, quality, group }: RatedRoute,
  encoder: RouteEncoder,
  numCandidates: number,
  propensity: number,
): TriedExample {
  const input = encoder.encode(request);
  const outcomes = new Float32Array(numCandidates).fill(NaN);
  outcomes[candidate] = quality;
  const propensities = new Float32Array(numCandidates).fill(1);
  propensities[candidate] = propensity;
  return { input, outcomes, propensities, group, tried: candidate };
}
