import { RuvLLMError } from '../../core/errors.ts';
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
import { toRatedRoute } from './rated-routes.ts';
import { getRouterText, putRouterText, ROUTER_LINE, type RouterContents } from './router-line.ts';
import {
  MAX_ROUTER_EXAMPLES,
  MIN_ROUTER_EXAMPLES,
  type RatedRoute,
  type RouterJob,
  type RouterOutcome,
} from './train-router.ts';

/** What there is to choose from, and at what price. */
export interface RouterPlan {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  readonly safeDefault: number;
  readonly minConfidence: number;
  /** Which candidate answered a request; −1: none of these. */
  candidateOf(one: Trajectory): number;
}

export interface RouterReport {
  readonly numExamples: number;
  /** Null: there was too little to learn from. */
  readonly version: LearnedVersion | null;
  readonly reason: string;
}

export interface TrainControl {
  /** Ends it with `aborted`; what served serves on. */
  readonly signal?: AbortSignal | undefined;
}

/** Trains routers of tenants, each on its own requests. */
export interface RouterTrainer {
  train(tenant: string, loop: Loop, options?: TrainControl): Promise<RouterReport>;
  /** Trains where enough is new; null where not. */
  maybeTrain(tenant: string, options?: TrainControl): Promise<RouterReport | null>;
}

export interface RouterTrainerContext {
  readonly store: MemoryStore;
  readonly trajectories: Trajectories;
  readonly versions: VersionLog;
  readonly blobs: FloatBlobs;
  readonly work: Pick<LearningWork, 'trainRouter' | 'cancel'>;
  readonly plan: RouterPlan;
}

/** Ratings that are worth a look before the next hour. */
const MIN_NEW = 10;
const SEED = 1;
const RATED = { field: 'verdict', is: 'in', values: ['success', 'failure', 'partial'] } as const;
type Loop = 'background' | 'deep' | 'operator';

/** What the log of versions takes. */
const MAX_LEARNED_FROM = 50_000;

interface Learned {
  readonly outcome: RouterOutcome;
  readonly sampling: LearnedSampling[];
  readonly active: LearnedVersion | null;
  readonly learnedFrom: string[];
}

const contentsOf = (version: LearnedVersion | null): RouterContents | null =>
  version === null ? null : (version.contents as unknown as RouterContents);

function checkAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new RuvLLMError('aborted', 'training of a router was cancelled: what serves stays');
}

export function createRouterTrainer(context: RouterTrainerContext): RouterTrainer {
  const { trajectories, versions, blobs, work, plan, store } = context;
  /** One at a time for a tenant: each is compared with what the one before left. */
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
      // Stopped too late for the worker to hear of it: it was to be stopped all the same.
      checkAborted(signal);
      return outcome;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  async function train(tenant: string, loop: Loop, { signal }: TrainControl): Promise<RouterReport> {
    const found = await trajectories.find(tenant, { conditions: [RATED], order: 'newest', limit: MAX_ROUTER_EXAMPLES });
    const rated = found.toReversed().flatMap((one) => {
      const example = toRatedRoute(one, plan.candidateOf);
      return example === null ? [] : [{ example, requestId: one.requestId, sampled: toSampledAnswers(one, example) }];
    });
    const numExamples = rated.length;
    if (numExamples < MIN_ROUTER_EXAMPLES) {
      const reason = `${numExamples} rated requests of the candidates are too few, ${MIN_ROUTER_EXAMPLES} are needed`;
      return { numExamples, version: null, reason };
    }
    const { candidates, weights, safeDefault, minConfidence } = plan;
    const active = await versions.active(tenant, ROUTER_LINE);
    const job = {
      candidates,
      weights,
      safeDefault,
      minConfidence,
      examples: rated.map(({ example }) => example),
      serving: await getRouterText(blobs, tenant, active),
      seed: SEED,
    };
    const outcome = await inWorker(job, signal);
    const version = await writeVersion(tenant, loop, {
      outcome,
      sampling: learnSampling(
        rated.flatMap(({ sampled }) => sampled),
        candidates.map(({ id }) => id),
        contentsOf(active)?.sampling ?? [],
      ),
      active,
      learnedFrom: rated.map(({ requestId }) => requestId),
    });
    return { numExamples, version, reason: version.reason };
  }

  /** A new router, none in its place, or the router that serves with other sampling; anything else is refused. */
  async function writeVersion(
    tenant: string,
    loop: Loop,
    { outcome, sampling, active, learnedFrom }: Learned,
  ): Promise<LearnedVersion> {
    const { gate, next, text, winner, contests } = outcome;
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
    } as const;
    const contents: RouterContents = { ...(isSampling && serving !== null ? serving : trained), sampling };
    return versions.add(tenant, {
      line: ROUTER_LINE,
      loop,
      isAccepted: next !== 'unchanged' || isSampling,
      reason: `${what}: ${gate.reason}`.slice(0, 2048),
      metrics: { ...(isSampling ? active?.metrics : gate.metrics), examples: learnedFrom.length },
      blobs: isSampling ? (active?.blobs ?? {}) : text === null ? {} : await putRouterText(blobs, tenant, text),
      contents: contents as unknown as JsonValue,
      // What the router that stays had learned from is in the new version, too.
      learnedFrom: [...new Set([...learnedFrom, ...(isSampling ? (active?.learnedFrom ?? []) : [])])].slice(0, MAX_LEARNED_FROM), // prettier-ignore
    });
  }

  return {
    train: (tenant, loop, control = {}) => inTurn(tenant, () => train(tenant, loop, control)),
    async maybeTrain(tenant, control = {}) {
      const [last] = await versions.history(tenant, ROUTER_LINE, 1);
      const numRated = await store.count(tenant, { kinds: ['trajectory'], filter: { fields: [RATED] } });
      if (numRated < MIN_ROUTER_EXAMPLES) return null;
      // Also where fewer are left: what has expired or was forgotten is to be forgotten by the router, too.
      if (last !== undefined && Math.abs(numRated - (last.metrics['examples'] ?? 0)) < MIN_NEW) return null;
      return inTurn(tenant, () => train(tenant, 'background', control));
    },
  };
}
