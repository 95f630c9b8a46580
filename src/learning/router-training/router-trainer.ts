import { createSerialQueues } from '../../core/serial-queues.ts';
import type { LearnedSampling } from '../../memory/schemas/policy.ts';
import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import type { JsonValue, MemoryStore } from '../../memory/types.ts';
import type { Candidate, UtilityWeights } from '../router/index.ts';
import type { LearningWork } from '../sona/types.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion, VersionLog } from '../versions/version-log.ts';
import { describeSampling, isSameSampling, learnSampling, type SampledAnswer } from './learn-sampling.ts';
import { checkAborted, collectRoutes, RATED, type RouteVectors, withVectors } from './collect-routes.ts';
import { getRouterText, putRouterText, ROUTER_LINE, type RouterContents } from './router-line.ts';
import {
  MAX_ROUTER_EXAMPLES,
  MIN_ROUTER_EXAMPLES,
  type RatedRoute,
  type RouterJob,
  type RouterOutcome,
} from './train-router.ts';
import type { PeerRoutes } from './screen-peers.ts';

export interface RouterPlan {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  readonly safeDefault: number;
  readonly minConfidence: number;
  /** Candidate that answered a request, or −1. */
  candidateOf(one: Trajectory): number;
}

export type { RouteVectors };

/** Rated requests of trusted nodes. */
export interface PeerEvidence {
  /** Examples for these candidates; with a space, only those with a vector of it. */
  routesOf(tenant: string, candidates: readonly string[], space: string | null): Promise<readonly ForeignRoutes[]>;
  /** Changes with every accepted, expired or removed bundle; 0: none. */
  revision(tenant: string): Promise<number>;
}

export interface ForeignRoutes extends PeerRoutes {
  /** As in `learnedFrom`, so that removing the peer withdraws what was learned from it. */
  readonly id: string;
}

export interface RouterReport {
  readonly numExamples: number;
  /** Null: too few rated requests. */
  readonly version: LearnedVersion | null;
  readonly reason: string;
}

export interface TrainControl {
  /** Stops the training with `aborted`; the active router stays. */
  readonly signal?: AbortSignal | undefined;
}

/** Trains each tenant's router on the tenant's own requests. */
export interface RouterTrainer {
  train(tenant: string, loop: Loop, options?: TrainControl): Promise<RouterReport>;
  /** Trains if there are enough new ratings; null otherwise. */
  maybeTrain(tenant: string, options?: TrainControl): Promise<RouterReport | null>;
}

export interface RouterTrainerContext {
  readonly store: MemoryStore;
  readonly trajectories: Trajectories;
  readonly versions: VersionLog;
  readonly blobs: FloatBlobs;
  readonly work: Pick<LearningWork, 'trainRouter' | 'cancel'>;
  readonly plan: RouterPlan;
  /** Default none: routers read the text alone. */
  readonly vectors?: RouteVectors | null;
  /** Default none: a tenant's router learns from the tenant's own requests. */
  readonly peers?: PeerEvidence | null;
}

/** New ratings before another training. */
const MIN_NEW = 10;
const SEED = 1;
type Loop = 'background' | 'deep' | 'operator';

/** Limit of the version log. */
const MAX_LEARNED_FROM = 50_000;

interface TrainingResult {
  readonly outcome: RouterOutcome;
  readonly sampling: LearnedSampling[];
  readonly active: LearnedVersion | null;
  readonly learnedFrom: string[];
  /** Of the peers whose examples were used. */
  readonly peerIds: readonly string[];
  readonly revision: number;
}

const contentsOf = (version: LearnedVersion | null): RouterContents | null =>
  version === null ? null : (version.contents as unknown as RouterContents);

function describePeers(verdicts: RouterOutcome['peers']): string {
  const parts = verdicts.map(({ peer, numExamples, isUsed, reason }) =>
    isUsed ? `${numExamples} ratings of ${peer} used` : `${numExamples} ratings of ${peer} ${reason}`,
  );
  return parts.length === 0 ? '' : `; ${parts.join('; ')}`;
}

export function createRouterTrainer(context: RouterTrainerContext): RouterTrainer {
  const { trajectories, versions, blobs, work, plan, store, vectors = null, peers = null } = context;
  /** One training at a time per tenant: each is compared with the router the previous one left active. */
  const { run: inTurn } = createSerialQueues();

  function toSampledAnswers({ parameters }: Trajectory, { candidate, quality, group }: RatedRoute): SampledAnswer[] {
    const { temperature = null, topP = null } = parameters;
    if (temperature === null || topP === null) return [];
    return [{ candidate: plan.candidates[candidate]!.id, temperature, topP, quality, group }];
  }

  async function inWorker(job: RouterJob, signal: AbortSignal | undefined): Promise<RouterOutcome> {
    checkAborted(signal);
    const stop = (): void => void work.cancel().catch(() => {});
    signal?.addEventListener('abort', stop, { once: true });
    try {
      const outcome = await work.trainRouter(job);
      // The abort came too late for the worker, but its result must not be used.
      checkAborted(signal);
      return outcome;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  async function train(tenant: string, loop: Loop, { signal }: TrainControl): Promise<RouterReport> {
    const rated = await collectRoutes(trajectories, tenant, {
      limit: MAX_ROUTER_EXAMPLES,
      candidateOf: plan.candidateOf,
    });
    const numExamples = rated.length;
    if (numExamples < MIN_ROUTER_EXAMPLES) {
      const reason = `${numExamples} rated requests answered by candidates; router training requires ${MIN_ROUTER_EXAMPLES}`;
      return { numExamples, version: null, reason };
    }
    const { candidates, weights, safeDefault, minConfidence } = plan;
    const active = await versions.active(tenant, ROUTER_LINE);
    const ids = candidates.map(({ id }) => id);
    const own = await withVectors(rated, vectors, signal);
    const revision = (await peers?.revision(tenant)) ?? 0;
    const foreign = (await peers?.routesOf(tenant, ids, own.space)) ?? [];
    const job = {
      candidates,
      weights,
      safeDefault,
      minConfidence,
      ...own,
      peers: foreign.map(({ peer, examples }) => ({ peer, examples })),
      serving: await getRouterText(blobs, tenant, active),
      seed: SEED,
    };
    const outcome = await inWorker(job, signal);
    const version = await writeVersion(tenant, loop, {
      outcome,
      sampling: learnSampling(
        rated.flatMap(({ trajectory, example }) => toSampledAnswers(trajectory, example)),
        ids,
        contentsOf(active)?.sampling ?? [],
      ),
      active,
      learnedFrom: rated.map(({ trajectory }) => trajectory.requestId),
      peerIds: foreign
        .filter(({ peer }) => outcome.peers.some((one) => one.isUsed && one.peer === peer))
        .map(({ id }) => id),
      revision,
    });
    return { numExamples, version, reason: version.reason };
  }

  /** Accepts a new router, a return to the safe default, or new sampling for the active router; otherwise records a rejected version. */
  async function writeVersion(
    tenant: string,
    loop: Loop,
    { outcome, sampling, active, learnedFrom, peerIds, revision }: TrainingResult,
  ): Promise<LearnedVersion> {
    const { gate, next, text, winner, contests, peers: verdicts } = outcome;
    const serving = contentsOf(active);
    const isSampling = next === 'unchanged' && !isSameSampling(sampling, serving?.sampling ?? []);
    const settings = sampling.length === 0 ? 'default sampling' : describeSampling(sampling);
    const what = {
      router: winner,
      default: 'back to the safe default',
      unchanged: isSampling ? `${settings}; the router stays` : winner,
    }[next];
    const trained = {
      kind: next === 'default' || isSampling ? 'default' : 'router',
      winner,
      candidates: plan.candidates.map(({ id }) => id),
      contests: contests.filter(({ heldOut }) => Number.isFinite(heldOut)).map((one) => ({ ...one })),
      ...(verdicts.length === 0 ? {} : { peers: verdicts.map((one) => ({ ...one })) }),
    } as const;
    const contents: RouterContents = { ...(isSampling && serving !== null ? serving : trained), sampling };
    return versions.add(tenant, {
      line: ROUTER_LINE,
      loop,
      isAccepted: next !== 'unchanged' || isSampling,
      reason: `${what}: ${gate.reason}${describePeers(verdicts)}`.slice(0, 2048),
      metrics: {
        ...(isSampling ? active?.metrics : gate.metrics),
        examples: learnedFrom.length,
        ...(revision === 0 ? {} : { peer_revision: revision }),
      },
      blobs: isSampling ? (active?.blobs ?? {}) : text === null ? {} : await putRouterText(blobs, tenant, text),
      contents: contents as unknown as JsonValue,
      // Includes the requests that the unchanged router was trained on.
      learnedFrom: [...new Set([...(text === null ? [] : peerIds), ...learnedFrom, ...(isSampling ? (active?.learnedFrom ?? []) : [])])].slice(0, MAX_LEARNED_FROM), // prettier-ignore
    });
  }

  return {
    train: (tenant, loop, control = {}) => inTurn(tenant, () => train(tenant, loop, control)),
    async maybeTrain(tenant, control = {}) {
      const [last] = await versions.history(tenant, ROUTER_LINE, 1);
      const numRated = await store.count(tenant, { kinds: ['trajectory'], filter: { fields: [RATED] } });
      if (numRated < MIN_ROUTER_EXAMPLES) return null;
      // Also if there are fewer: a router must not outlive expired or forgotten requests.
      const isSame = last !== undefined && Math.abs(numRated - (last.metrics['examples'] ?? 0)) < MIN_NEW;
      if (isSame && ((await peers?.revision(tenant)) ?? 0) === (last.metrics['peer_revision'] ?? 0)) return null;
      return inTurn(tenant, () => train(tenant, 'background', control));
    },
  };
}
