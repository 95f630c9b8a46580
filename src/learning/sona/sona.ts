import type { Adapter, LowRankFactors } from '../../adapters/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createSerialQueues } from '../../core/serial-queues.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { PolicyMemory } from '../../memory/policies/policies.ts';
import type { FieldCondition, MemoryStore } from '../../memory/types.ts';
import type { OwnAdapter, PeerDelta } from '../federation/federation.ts';
import { createRerankTrainer, type RerankReport, type RerankTrainer } from '../rerank-training/rerank-trainer.ts';
import { routerPointer } from '../router-training/router-line.ts';
import { createPatternUses, type PatternUses } from '../reasoning-bank/pattern-uses.ts';
import { createReasoningBank, type DistillationReport, type ReasoningBank } from '../reasoning-bank/bank.ts';
import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import { createFloatBlobs } from '../versions/blobs.ts';
import { createVersionLog, type LearnedVersion, type VersionLog } from '../versions/version-log.ts';
import { createCheckpoints } from './checkpoint.ts';
import type { ConsolidateReport } from './consolidate.ts';
import { createExaminedAnswers } from './examined.ts';
import { createForgetting, type ForgetReport, refusedVersion } from './forget.ts';
import { createInstantLoop } from './instant-loop.ts';
import { adapterLine } from './learned-adapter.ts';
import { ownVersion } from './merge-peers.ts';
import { createMicroStore } from './micro-store.ts';
import { resolveSonaOptions, type SonaOptions } from './options.ts';
import { createProbes, type Probe } from './probes.ts';
import { createServings, servingKey } from './serving.ts';
import type { EwcSettings } from './track-tasks.ts';
import { createTrainingLoops } from './training-loops.ts';
import type {
  InstantEvent,
  InstantReport,
  LastRun,
  LearningModel,
  LearningWork,
  RunOptions,
  SonaStats,
} from './types.ts';

export type { ForgetReport } from './forget.ts';
export type { InstantEvent, InstantReport, InstantResult, SonaStats } from './types.ts';

export interface DeepReport {
  readonly bank: DistillationReport;
  readonly reranker: RerankReport;
  readonly adapter: ConsolidateReport;
}

/** Three learning loops: from single answers, from an hour's ratings and from all of them; separate for each tenant. */
export interface Sona {
  /** Loop A: learns from the feedback on one request. */
  instantAdapt(tenant: string, trajectory: Trajectory): Promise<InstantReport>;
  /** Loop B. */
  backgroundConsolidate(tenant: string, modelId: string, options?: RunOptions): Promise<ConsolidateReport>;
  /** Loop C. */
  deepOptimize(tenant: string, modelId: string, options?: RunOptions): Promise<DeepReport>;
  /** Runs loop B if it is due, else returns null. */
  maybeBackground(tenant: string, modelId: string, options?: RunOptions): Promise<ConsolidateReport | null>;
  /** The last run of loop B or C since the start, also one that made no version. */
  lastRun(tenant: string, modelId: string): LastRun | null;
  /** Whether the last run is an interval ago and enough requests are rated. */
  shouldTriggerBackground(tenant: string, modelId: string): Promise<boolean>;
  shouldTriggerDeep(tenant: string, modelId: string): Promise<boolean>;
  /** A version as an adapter that can be written to a file; throws `not_found` if its weights are gone. */
  adapterOf(tenant: string, modelId: string, version: number): Promise<Adapter>;
  /** Serves the tenant's active version, after a start or when a model is loaded. */
  restore(tenant: string, modelId: string): Promise<void>;
  rollback(tenant: string, modelId: string, toVersion: number): Promise<LearnedVersion | null>;
  /** Requests that loop A learned from since the active version. */
  taught(tenant: string, modelId: string): Promise<readonly string[]>;
  /** Models with steps of loop A. */
  taughtModels(tenant: string): Promise<readonly string[]>;
  /** Stops the loops of a tenant that is about to be erased and serves these models as in their files. */
  leaveTenant(tenant: string, modelIds: readonly string[]): Promise<void>;
  /** Deletes requests and everything learned from them, then learns again from the remaining ones. */
  forget(tenant: string, conditions: readonly FieldCondition[]): Promise<ForgetReport>;
  /** Merges the adapters of peers with the own one; the gate decides whether the result serves. */
  mergePeers(tenant: string, modelId: string, deltas: readonly PeerDelta[], options?: RunOptions): Promise<ConsolidateReport>; // prettier-ignore
  /** The newest adapter that this node trained without peers; null: there is none. */
  ownAdapter(tenant: string, modelId: string): Promise<OwnAdapter | null>;
  /** Deletes versions that learned from these peers; the newest of this node alone serves. */
  withdrawPeers(tenant: string, peerIds: readonly string[]): Promise<ForgetReport['relearned']>;
  /** Serves the model as in its file; the requests stay. */
  reset(tenant: string, modelId: string): Promise<void>;
  readonly versions: VersionLog;
  readonly bank: ReasoningBank;
  /** Uses of patterns; written before the deep loop and on close. */
  readonly uses: PatternUses;
  readonly reranking: RerankTrainer;
  stats(): SonaStats;
  /** Waits for running loops and writes pending uses. */
  close(): Promise<void>;
}

export interface SonaContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly trajectories: Trajectories;
  readonly work: LearningWork;
  readonly policies: () => PolicyMemory;
  /** Null if the model is not loaded. */
  model(id: string): LearningModel | null;
  createAdapter(architecture: string, factors: readonly LowRankFactors[]): Promise<Adapter>;
  /** Called with errors from background work. */
  readonly report: (message: string) => void;
  /** Called when the instant loop ends for a request, or when newer feedback replaces an earlier one. */
  readonly onInstant?: (event: InstantEvent) => void;
  /** The tenant's `ewc` policy. */
  ewcSettings(tenant: string): Promise<EwcSettings>;
  readonly options?: SonaOptions;
  /** Unrelated answers that no step may change. Default: everyday questions. */
  readonly probes?: readonly Probe[];
}

/** Share of loop C's limit for re-ranking, at most. */
const RERANK_SHARE = 1 / 4;

export function createSona(context: SonaContext): Sona {
  const { store, services, trajectories, work } = context;
  const options = resolveSonaOptions(context.options);
  const blobs = createFloatBlobs(store, services);
  const versions = createVersionLog(store, services, routerPointer(context.policies));
  const micros = createMicroStore(store, services);
  const checkpoints = createCheckpoints(store, services);
  const examined = createExaminedAnswers(store, services);
  const probes = createProbes(examined, context.probes);
  const bank = createReasoningBank({ store, services, trajectories, cluster: work.cluster });
  const uses = createPatternUses(bank);
  const reranking = createRerankTrainer({ store, services, trajectories, versions, blobs, work, options, report: context.report }); // prettier-ignore
  const servings = createServings({
    versions,
    blobs,
    micros,
    work,
    createAdapter: (architecture, factors) => context.createAdapter(architecture, factors),
  });
  const queues = createSerialQueues();
  /** Instant loops that are queued or running. */
  const steps = new Set<{ readonly tenant: string; readonly model: string }>();
  const stats = { numInstant: 0, numInstantRefused: 0, numBackground: 0, numDeep: 0, numAccepted: 0, numRefused: 0 };

  function modelOf(modelId: string): LearningModel {
    const model = context.model(modelId);
    if (model !== null) return model;
    throw new RuvLLMError(
      'not_loaded',
      `the model ${JSON.stringify(modelId)} is not loaded, so nothing can be learned for it`,
    );
  }

  /** Loops of one tenant and model run one after the other: each starts from the result of the last. */
  const inTurn = <T>(tenant: string, modelId: string, run: () => Promise<T>): Promise<T> =>
    queues.run(servingKey(tenant, modelId), run);

  const instant = createInstantLoop({
    trajectories,
    work,
    servings,
    options,
    stats,
    modelOf,
    examined,
    probes,
    onInstant: context.onInstant ?? (() => {}),
  });
  const shared = { store, services, trajectories, versions, blobs, checkpoints, servings, examined };
  const ewcSettings = (tenant: string): Promise<EwcSettings> => context.ewcSettings(tenant);
  const loops = createTrainingLoops({ ...shared, work, options, stats, instant, probes, ewcSettings });
  const forgetting = createForgetting({
    ...shared,
    policies: context.policies,
    micros,
    bank,
    reranking,
    model: (id) => context.model(id),
    inTurn,
    adaptingModels: (tenant) => [...steps].flatMap((step) => (step.tenant === tenant ? [step.model] : [])),
    teachAgain: (tenant, model, requestIds) => instant.teachAgain(tenant, model, requestIds),
    learnAnew: (tenant, model) => loops.learnAnew(tenant, model),
  });
  const finished = new Map<string, Promise<void>>();

  /** Completes a deletion that a crash cut short, once for each tenant. */
  function finishForgetting(tenant: string): Promise<void> {
    const finishing = finished.get(tenant) ?? forgetting.finish(tenant);
    finished.set(tenant, finishing);
    finishing.catch(() => finished.delete(tenant));
    return finishing;
  }

  async function deepOptimize(tenant: string, model: LearningModel, given?: RunOptions): Promise<DeepReport> {
    stats.numDeep++;
    const { deepLimitMs } = options;
    const endMs = services.now() + deepLimitMs;
    // Unwritten uses would make patterns in use look idle.
    await uses.flush();
    const distilled = await bank.distil(tenant);
    const reranker = await reranking.train(tenant, 'deep', given?.signal, deepLimitMs * RERANK_SHARE);
    // The limit covers the whole loop: training gets what the other parts left.
    const limitMs = Math.max(1, endMs - services.now());
    return { bank: distilled, reranker, adapter: await loops.deep(tenant, model, limitMs, given) };
  }

  /** Serves the active version without what single answers taught on top of another one. */
  async function renew(tenant: string, model: LearningModel): Promise<void> {
    await servings.dropMicro(tenant, model.id);
    await servings.renew(tenant, model);
  }

  return {
    versions,
    bank,
    uses,
    reranking,
    async instantAdapt(tenant, trajectory) {
      const { model } = trajectory;
      const step = { tenant, model };
      steps.add(step);
      try {
        return await inTurn(tenant, model, () => instant.adapt(tenant, trajectory));
      } finally {
        steps.delete(step);
      }
    },
    backgroundConsolidate: (tenant, modelId, given) =>
      inTurn(tenant, modelId, () => loops.background(tenant, modelOf(modelId), given)),
    deepOptimize: (tenant, modelId, given) =>
      inTurn(tenant, modelId, () => deepOptimize(tenant, modelOf(modelId), given)),
    lastRun: (tenant, modelId) => loops.lastRun(tenant, modelId),
    shouldTriggerBackground: (tenant, modelId) => loops.isBackgroundDue(tenant, modelId),
    shouldTriggerDeep: (tenant, modelId) => loops.isDeepDue(tenant, modelId),
    async maybeBackground(tenant, modelId, given) {
      if (!(await loops.isBackgroundDue(tenant, modelId))) return null;
      return inTurn(tenant, modelId, () => loops.dueBackground(tenant, modelOf(modelId), given));
    },
    async adapterOf(tenant, modelId, version) {
      const model = modelOf(modelId);
      const learned = await versions.get(tenant, adapterLine(modelId), version);
      if (!learned.isAccepted) throw refusedVersion(version, learned.reason);
      return context.createAdapter(model.architecture, await servings.factorsOf(tenant, model, learned));
    },
    async restore(tenant, modelId) {
      await finishForgetting(tenant);
      return inTurn(tenant, modelId, () => servings.renew(tenant, modelOf(modelId)));
    },
    async taught(tenant, modelId) {
      const micro = await micros.get(tenant, modelId);
      const active = await versions.active(tenant, adapterLine(modelId));
      return micro === null || micro.baseVersion !== (active?.version ?? 0) ? [] : micro.learnedFrom;
    },
    taughtModels: (tenant) => micros.models(tenant),
    rollback: (tenant, modelId, toVersion) =>
      inTurn(tenant, modelId, async () => {
        const model = modelOf(modelId);
        const line = adapterLine(modelId);
        // Read first: a version whose weights are gone must not become active.
        const target = toVersion === 0 ? null : await versions.get(tenant, line, toVersion);
        if (target?.isAccepted) await servings.factorsOf(tenant, model, target);
        const active = await versions.rollback(tenant, line, toVersion);
        await renew(tenant, model);
        return active;
      }),
    forget: (tenant, conditions) => forgetting.forget(tenant, conditions),
    mergePeers: (tenant, modelId, deltas, given) =>
      inTurn(tenant, modelId, () => loops.mergePeers(tenant, modelOf(modelId), deltas, given)),
    async ownAdapter(tenant, modelId) {
      const model = modelOf(modelId);
      const own = await ownVersion({ versions, blobs, work }, tenant, model);
      const { path, architecture } = model;
      return own && { model: modelId, path, architecture, factors: own.factors };
    },
    withdrawPeers: (tenant, peerIds) => forgetting.withdrawPeers(tenant, peerIds),
    async leaveTenant(tenant, modelIds) {
      loops.stopTenant(tenant, modelIds);
      finished.delete(tenant);
      uses.forget(tenant);
      await reranking.forget(tenant, new Set()); // waits for a training that would still write
      for (const modelId of modelIds) {
        const model = context.model(modelId);
        if (model !== null) await inTurn(tenant, modelId, () => servings.forgetTenant(tenant, model));
      }
    },
    reset: (tenant, modelId) =>
      inTurn(tenant, modelId, async () => {
        const model = modelOf(modelId);
        await versions.rollback(tenant, adapterLine(modelId), 0);
        await renew(tenant, model);
      }),
    stats: () => ({ ...stats }),
    async close() {
      await queues.settle();
      await uses.flush();
    },
  };
}
