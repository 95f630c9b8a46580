import type { Adapter, LowRankFactors } from '../../adapters/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createSerialQueues } from '../../core/serial-queues.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { PolicyMemory } from '../../memory/policies/policies.ts';
import type { FieldCondition, MemoryStore } from '../../memory/types.ts';
import { createRerankTrainer, type RerankReport, type RerankTrainer } from '../rerank-training/rerank-trainer.ts';
import { routerPointer } from '../router-training/router-line.ts';
import { createPatternUses, type PatternUses } from '../reasoning-bank/pattern-uses.ts';
import { createReasoningBank, type DistillationReport, type ReasoningBank } from '../reasoning-bank/bank.ts';
import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import { createFloatBlobs } from '../versions/blobs.ts';
import { createVersionLog, type LearnedVersion, type VersionLog } from '../versions/version-log.ts';
import { createCheckpoints } from './checkpoint.ts';
import { consolidate, type ConsolidateReport } from './consolidate.ts';
import { lessonOf, ratedOf } from './examples.ts';
import { createForgetting, type ForgetReport, refusedVersion } from './forget.ts';
import { adapterLine } from './learned-adapter.ts';
import { microConfig } from './micro-factors.ts';
import { createMicroStore } from './micro-store.ts';
import { resolveSonaOptions, type SonaOptions } from './options.ts';
import { createServings, servingKey } from './serving.ts';
import type { EwcSettings } from './track-tasks.ts';
import type { InstantOutcome, LearningModel, LearningWork } from './types.ts';

export type { ForgetReport } from './forget.ts';
/** What one answer taught. */
export interface InstantReport extends Pick<
  InstantOutcome,
  'isApplied' | 'reason' | 'lossBefore' | 'lossAfter' | 'elapsedMs'
> {
  /** Of the model that the step is on top of, 0 as in its file; null: no step was taken. */
  readonly version: number | null;
}

export interface DeepReport {
  readonly bank: DistillationReport;
  readonly reranker: RerankReport;
  readonly adapter: ConsolidateReport;
}

export interface RunOptions {
  readonly signal?: AbortSignal;
}

export interface SonaStats {
  readonly numInstant: number;
  readonly numInstantRefused: number;
  readonly numBackground: number;
  readonly numDeep: number;
  readonly numAccepted: number;
  readonly numRefused: number;
}

/** Three loops of learning: from single answers, from what gathers in an hour, and from all there is. Each tenant's stays its own. */
export interface Sona {
  /** Loop A: learns from the feedback on one request. */
  instantAdapt(tenant: string, trajectory: Trajectory): Promise<InstantReport>;
  /** Loop B. */
  backgroundConsolidate(tenant: string, modelId: string, options?: RunOptions): Promise<ConsolidateReport>;
  /** Loop C. */
  deepOptimize(tenant: string, modelId: string, options?: RunOptions): Promise<DeepReport>;
  /** Loop B where it is due; null where not. */
  maybeBackground(tenant: string, modelId: string, options?: RunOptions): Promise<ConsolidateReport | null>;
  /** Whether loop B is due: long enough ago, and enough to learn from. */
  shouldTriggerBackground(tenant: string, modelId: string): Promise<boolean>;
  shouldTriggerDeep(tenant: string, modelId: string): Promise<boolean>;
  /** A version as an adapter that can be written to a file; `not_found` where its weights are gone. */
  adapterOf(tenant: string, modelId: string, version: number): Promise<Adapter>;
  /** What was learned for a tenant, put to use: after a start, or when a model is loaded. */
  restore(tenant: string, modelId: string): Promise<void>;
  rollback(tenant: string, modelId: string, toVersion: number): Promise<LearnedVersion | null>;
  /** Requests that single answers taught something since the version that serves. */
  taught(tenant: string, modelId: string): Promise<readonly string[]>;
  /** The models that single answers taught something. */
  taughtModels(tenant: string): Promise<readonly string[]>;
  /** Stops the loops of a tenant that is about to be erased, and gives these models back as in their files. */
  leaveTenant(tenant: string, modelIds: readonly string[]): Promise<void>;
  /** Forgets requests and everything that was learned from them: what learned from them learns anew from the rest. */
  forget(tenant: string, conditions: readonly FieldCondition[]): Promise<ForgetReport>;
  /** Forgets everything that was learned for a model; what it was learned from stays. */
  reset(tenant: string, modelId: string): Promise<void>;
  readonly versions: VersionLog;
  readonly bank: ReasoningBank;
  /** Patterns that requests used; written before the deep loop, and when it is closed. */
  readonly uses: PatternUses;
  readonly reranking: RerankTrainer;
  stats(): SonaStats;
  /** Writes what waits to be written. */
  close(): Promise<void>;
}

export interface SonaContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly trajectories: Trajectories;
  readonly work: LearningWork;
  readonly policies: () => PolicyMemory;
  /** Null: no such model is loaded. */
  model(id: string): LearningModel | null;
  createAdapter(architecture: string, factors: readonly LowRankFactors[]): Promise<Adapter>;
  /** Hears of what goes wrong where nobody waits for it. */
  readonly report: (message: string) => void;
  /** The tenant's `ewc` policy. */
  ewcSettings(tenant: string): Promise<EwcSettings>;
  readonly options?: SonaOptions;
}

const BACKGROUND_EPOCHS = 3;
const DEEP_EPOCHS = 10;
/** Of loop C's limit, at most, for the order of what is recalled. */
const RERANK_SHARE = 1 / 4;
/** Rated requests below which loop C has no more to say than loop B. */
const MIN_DEEP = 50;
/** Single answers that are taught again after a version, or a forgetting: each takes a pass of the model. */
const MAX_TAUGHT_AGAIN = 64;

export function createSona(context: SonaContext): Sona {
  const { store, services, trajectories, work } = context;
  const options = resolveSonaOptions(context.options);
  const blobs = createFloatBlobs(store, services);
  const versions = createVersionLog(store, services, routerPointer(context.policies));
  const micros = createMicroStore(store, services);
  const checkpoints = createCheckpoints(store, services);
  const bank = createReasoningBank({ store, services, trajectories, cluster: work.cluster });
  const uses = createPatternUses(bank);
  const reranking = createRerankTrainer({ store, services, trajectories, versions, blobs, work, options, report: context.report }); // prettier-ignore
  const ewcSettings = (tenant: string): Promise<EwcSettings> => context.ewcSettings(tenant);
  const shared = { trajectories, versions, blobs, checkpoints, work, services, options, ewcSettings };
  const servings = createServings({
    versions,
    blobs,
    micros,
    work,
    createAdapter: (architecture, factors) => context.createAdapter(architecture, factors),
  });
  const queues = createSerialQueues();
  /** Stops the loops of a tenant that is about to be erased. */
  const stops = new Map<string, AbortController>();
  /** When a loop that was due found nothing to do: it looks again after as long as after a run. */
  const idleMs = new Map<string, number>();
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

  /** Loops of one tenant and model run one after the other: each begins with what the one before left. */
  const inTurn = <T>(tenant: string, modelId: string, run: () => Promise<T>): Promise<T> =>
    queues.run(servingKey(tenant, modelId), run);

  async function instant(tenant: string, trajectory: Trajectory): Promise<InstantReport> {
    const nothing = { isApplied: false, lossBefore: null, lossAfter: null, elapsedMs: 0, version: null };
    const lesson = lessonOf(trajectory);
    if (lesson === null) return { ...nothing, reason: `nothing to learn: the verdict is ${trajectory.verdict}` };
    const model = modelOf(trajectory.model);
    const example = await model.encodeExample(trajectory, lesson.answer);
    if (example === null) return { ...nothing, reason: 'nothing to learn: the prompt was not kept, or is too long' };
    const now = await servings.of(tenant, model);
    const samples = await model.examine(tenant, example);
    const outcome = await work.instant({
      key: servingKey(tenant, model.id),
      config: microConfig(model),
      state: now.micro,
      samples,
      quality: lesson.weight > 0 ? 1 : 0,
      learningRate: options.instantLearningRate,
    });
    // Not what it was computed with: states and factors are no business of whoever gave feedback.
    const { isApplied, reason, lossBefore, lossAfter, elapsedMs } = outcome;
    const report = { isApplied, reason, lossBefore, lossAfter, elapsedMs };
    if (outcome.state === null) {
      stats.numInstantRefused++;
      return { ...report, version: null };
    }
    stats.numInstant++;
    await servings.addStep(tenant, model, trajectory.requestId, outcome);
    return { ...report, version: now.version };
  }

  async function run(
    tenant: string,
    model: LearningModel,
    how: { loop: LearnedVersion['loop']; limitMs: number; numEpochs: number; isFromScratch: boolean },
    { signal }: RunOptions = {},
  ): Promise<ConsolidateReport> {
    const stop = stops.get(tenant) ?? new AbortController();
    stops.set(tenant, stop);
    const either = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
    const report = await consolidate(shared, { tenant, model, signal: either, ...how });
    if (report.version?.isAccepted) {
      stats.numAccepted++;
      // What single answers taught is in the new version now: twice would be too much.
      const { learnedFrom } = await servings.of(tenant, model);
      await servings.dropMicro(tenant, model.id);
      await servings.renew(tenant, model);
      // Not those it was only judged by: nobody's correction is lost.
      const known = new Set(report.version.learnedFrom);
      await teachAgain(
        tenant,
        model,
        learnedFrom.filter((id) => !known.has(id)),
      );
    } else if (report.version !== null) stats.numRefused++;
    return report;
  }

  /** How many of them changed something. */
  async function teachAgain(tenant: string, model: LearningModel, requestIds: readonly string[]): Promise<number> {
    let count = 0;
    for (const requestId of requestIds.slice(-MAX_TAUGHT_AGAIN)) {
      const trajectory = await trajectories.get(tenant, requestId);
      if (trajectory?.model === model.id && (await instant(tenant, trajectory)).isApplied) count++;
    }
    return count;
  }

  const forgetting = createForgetting({
    store,
    services,
    trajectories,
    versions,
    blobs,
    policies: context.policies,
    micros,
    checkpoints,
    bank,
    reranking,
    servings,
    model: (id) => context.model(id),
    inTurn,
    adaptingModels: (tenant) => [...steps].flatMap((step) => (step.tenant === tenant ? [step.model] : [])),
    teachAgain,
    learnAnew: (tenant, model) =>
      run(tenant, model, {
        loop: 'operator',
        limitMs: options.deepLimitMs,
        numEpochs: BACKGROUND_EPOCHS,
        isFromScratch: true,
      }),
  });
  const finished = new Map<string, Promise<void>>();

  /** Once for each tenant: a forgetting that a crash cut short. */
  function finishForgetting(tenant: string): Promise<void> {
    const finishing = finished.get(tenant) ?? forgetting.finish(tenant);
    finished.set(tenant, finishing);
    finishing.catch(() => finished.delete(tenant));
    return finishing;
  }

  const background = (tenant: string, model: LearningModel, given?: RunOptions): Promise<ConsolidateReport> => {
    stats.numBackground++;
    const { backgroundLimitMs: limitMs } = options;
    return run(
      tenant,
      model,
      { loop: 'background', limitMs, numEpochs: BACKGROUND_EPOCHS, isFromScratch: false },
      given,
    );
  };

  const newest = async (tenant: string, modelId: string, loop: LearnedVersion['loop'] | null) =>
    (await versions.history(tenant, adapterLine(modelId))).find((one) => loop === null || one.loop === loop) ?? null;

  async function shouldTriggerBackground(tenant: string, modelId: string): Promise<boolean> {
    const last = await newest(tenant, modelId, null);
    const sinceMs = Math.max(last?.createdMs ?? -Infinity, idleMs.get(servingKey(tenant, modelId)) ?? -Infinity);
    if (services.now() - sinceMs < options.backgroundEveryMs) return false;
    return (await store.count(tenant, ratedRecords(modelId))) >= options.minExamples;
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
        return await inTurn(tenant, model, () => instant(tenant, trajectory));
      } finally {
        steps.delete(step);
      }
    },
    backgroundConsolidate: (tenant, modelId, given) =>
      inTurn(tenant, modelId, () => background(tenant, modelOf(modelId), given)),
    deepOptimize: (tenant, modelId, given) =>
      inTurn(tenant, modelId, async () => {
        stats.numDeep++;
        const { deepLimitMs } = options;
        const endMs = services.now() + deepLimitMs;
        // What was used must not go for being idle.
        await uses.flush();
        const report = await bank.distil(tenant);
        const reranker = await reranking.train(tenant, 'deep', given?.signal, deepLimitMs * RERANK_SHARE);
        // What is left after the rest of the loop: the limit is that of all of it.
        const limitMs = Math.max(1, endMs - services.now());
        const how = { loop: 'deep', limitMs, numEpochs: DEEP_EPOCHS, isFromScratch: false } as const;
        return { bank: report, reranker, adapter: await run(tenant, modelOf(modelId), how, given) };
      }),
    shouldTriggerBackground,
    async adapterOf(tenant, modelId, version) {
      const model = modelOf(modelId);
      const found = await versions.get(tenant, adapterLine(modelId), version);
      if (!found.isAccepted) {
        throw refusedVersion(version, found.reason);
      }
      return context.createAdapter(model.architecture, await servings.factorsOf(tenant, model, found));
    },
    async maybeBackground(tenant, modelId, given) {
      if (!(await shouldTriggerBackground(tenant, modelId))) return null;
      const wait = (): void => void idleMs.set(servingKey(tenant, modelId), services.now());
      try {
        const report = await inTurn(tenant, modelId, () => background(tenant, modelOf(modelId), given));
        if (report.version === null) wait();
        return report;
      } catch (error) {
        // A model that is too slow for the limit is so in a minute, too.
        if (error instanceof RuvLLMError && error.code === 'deadline_exceeded') wait();
        throw error;
      }
    },
    async shouldTriggerDeep(tenant, modelId) {
      const last = await newest(tenant, modelId, 'deep');
      if (last !== null && services.now() - last.createdMs < options.deepEveryMs) return false;
      return (await store.count(tenant, ratedRecords(modelId))) >= MIN_DEEP;
    },
    async restore(tenant, modelId) {
      await finishForgetting(tenant);
      return inTurn(tenant, modelId, () => servings.renew(tenant, modelOf(modelId)));
    },
    async taught(tenant, modelId) {
      const kept = await micros.get(tenant, modelId);
      const active = await versions.active(tenant, adapterLine(modelId));
      return kept === null || kept.baseVersion !== (active?.version ?? 0) ? [] : kept.learnedFrom;
    },
    taughtModels: (tenant) => micros.models(tenant),
    rollback: (tenant, modelId, toVersion) =>
      inTurn(tenant, modelId, async () => {
        const model = modelOf(modelId);
        const line = adapterLine(modelId);
        // Read first: one whose weights are gone must not become the one that serves.
        const wanted = toVersion === 0 ? null : await versions.get(tenant, line, toVersion);
        if (wanted?.isAccepted) await servings.factorsOf(tenant, model, wanted);
        const target = await versions.rollback(tenant, line, toVersion);
        await servings.dropMicro(tenant, model.id);
        await servings.renew(tenant, model);
        return target;
      }),
    forget: (tenant, conditions) => forgetting.forget(tenant, conditions),
    async leaveTenant(tenant, modelIds) {
      stops.get(tenant)?.abort();
      stops.delete(tenant);
      finished.delete(tenant);
      uses.forget(tenant);
      for (const modelId of modelIds) {
        const model = context.model(modelId);
        idleMs.delete(servingKey(tenant, modelId));
        if (model !== null) await inTurn(tenant, modelId, () => servings.forgetTenant(tenant, model));
      }
    },
    reset: (tenant, modelId) =>
      inTurn(tenant, modelId, async () => {
        const model = modelOf(modelId);
        await versions.rollback(tenant, adapterLine(modelId), 0);
        await servings.dropMicro(tenant, model.id);
        await servings.renew(tenant, model);
      }),
    stats: () => ({ ...stats }),
    async close() {
      await queues.settle();
      await uses.flush();
    },
  };
}

const ratedRecords = (modelId: string) =>
  ({ kinds: ['trajectory'], filter: { fields: ratedOf(modelId).conditions } }) as const;
