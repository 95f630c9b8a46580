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

export interface RouterPlan {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  readonly safeDefault: number;
  readonly minConfidence: number;
  /** Candidate that answered a request, or −1. */
  candidateOf(one: Trajectory): number;
}

/** Sentence vectors of requests, for routers that read them. */
export interface RouteVectors {
  readonly space: string;
  /** Null: the text has no vector. */
  embed(text: string): Promise<Float32Array | null>;
  now(): number;
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
}

/** New ratings before another training. */
const MIN_NEW = 10;
const SEED = 1;
/** The newest examples that get vectors: embedding more would keep a core busy for minutes. */
const MAX_EMBEDDED = 1500;
/** By quality, because a rating of the route leaves the verdict on the answer open. */
const RATED = { field: 'quality', is: '>=', value: 0 } as const;
type Loop = 'background' | 'deep' | 'operator';

/** Limit of the version log. */
const MAX_LEARNED_FROM = 50_000;

interface TrainingResult {
  readonly outcome: RouterOutcome;
  readonly sampling: LearnedSampling[];
  readonly active: LearnedVersion | null;
  readonly learnedFrom: string[];
}

const contentsOf = (version: LearnedVersion | null): RouterContents | null =>
  version === null ? null : (version.contents as unknown as RouterContents);

function checkAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new RuvLLMError('aborted', 'router training was cancelled; the active router stays');
}

export function createRouterTrainer(context: RouterTrainerContext): RouterTrainer {
  const { trajectories, versions, blobs, work, plan, store, vectors = null } = context;
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

  /** With the vectors of the newest examples; those of requests that recalled from memory are stored. Without vectors if one is missing. */
  async function withVectors(
    rated: readonly { readonly example: RatedRoute; readonly stored: Float32Array | null }[],
    signal: AbortSignal | undefined,
  ): Promise<Pick<RouterJob, 'examples' | 'space' | 'vectorMs'>> {
    const plain = { examples: rated.map(({ example }) => example), space: null, vectorMs: 0 };
    if (vectors === null) return plain;
    const examples: RatedRoute[] = [];
    let [totalMs, numEmbedded] = [0, 0];
    for (const { example, stored } of rated.slice(-MAX_EMBEDDED)) {
      checkAborted(signal);
      const startMs = vectors.now();
      const vector = stored ?? (await vectors.embed(example.request.turns.at(-1) ?? '').catch(() => null));
      if (vector === null) return plain;
      if (stored === null) [totalMs, numEmbedded] = [totalMs + vectors.now() - startMs, numEmbedded + 1];
      examples.push({ ...example, request: { ...example.request, vector } });
    }
    return { examples, space: vectors.space, vectorMs: totalMs / Math.max(1, numEmbedded) };
  }

  async function train(tenant: string, loop: Loop, { signal }: TrainControl): Promise<RouterReport> {
    const newest = await trajectories.find(tenant, {
      conditions: [RATED],
      order: 'newest',
      limit: MAX_ROUTER_EXAMPLES,
    });
    const rated = newest.toReversed().flatMap((one) => {
      const example = toRatedRoute(one, plan.candidateOf);
      if (example === null) return [];
      const stored = one.space !== null && one.space === vectors?.space ? one.embedding : null;
      return [{ example, stored, requestId: one.requestId, sampled: toSampledAnswers(one, example) }];
    });
    const numExamples = rated.length;
    if (numExamples < MIN_ROUTER_EXAMPLES) {
      const reason = `${numExamples} rated requests answered by candidates; router training requires ${MIN_ROUTER_EXAMPLES}`;
      return { numExamples, version: null, reason };
    }
    const { candidates, weights, safeDefault, minConfidence } = plan;
    const active = await versions.active(tenant, ROUTER_LINE);
    const job = {
      candidates,
      weights,
      safeDefault,
      minConfidence,
      ...(await withVectors(rated, signal)),
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

  /** Accepts a new router, a return to the safe default, or new sampling for the active router; otherwise records a rejected version. */
  async function writeVersion(
    tenant: string,
    loop: Loop,
    { outcome, sampling, active, learnedFrom }: TrainingResult,
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
      // Includes the requests that the unchanged router was trained on.
      learnedFrom: [...new Set([...learnedFrom, ...(isSampling ? (active?.learnedFrom ?? []) : [])])].slice(0, MAX_LEARNED_FROM), // prettier-ignore
    });
  }

  return {
    train: (tenant, loop, control = {}) => inTurn(tenant, () => train(tenant, loop, control)),
    async maybeTrain(tenant, control = {}) {
      const [last] = await versions.history(tenant, ROUTER_LINE, 1);
      const numRated = await store.count(tenant, { kinds: ['trajectory'], filter: { fields: [RATED] } });
      if (numRated < MIN_ROUTER_EXAMPLES) return null;
      // Also if there are fewer: a router must not outlive expired or forgotten requests.
      if (last !== undefined && Math.abs(numRated - (last.metrics['examples'] ?? 0)) < MIN_NEW) return null;
      return inTurn(tenant, () => train(tenant, 'background', control));
    },
  };
}
