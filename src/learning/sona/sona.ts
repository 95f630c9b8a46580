import type { Adapter, LowRankFactors } from '../../adapters/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { FieldCondition, MemoryStore } from '../../memory/types.ts';
import { RERANKER_LINE } from '../graph-attention/reranker-store.ts';
import type { MicroLoraState } from '../micro-lora/types.ts';
import { createRerankTrainer, type RerankReport, type RerankTrainer } from '../rerank-training/rerank-trainer.ts';
import { createReasoningBank, type DistillationReport, type ReasoningBank } from '../reasoning-bank/bank.ts';
import { forgetRouters } from '../router-training/router-line.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import { createFloatBlobs } from '../versions/blobs.ts';
import { createVersionLog, type LearnedVersion, type VersionLog } from '../versions/version-log.ts';
import { createCheckpoints } from './checkpoint.ts';
import { consolidate, type ConsolidateReport } from './consolidate.ts';
import { lessonOf } from './examples.ts';
import { ADAPTER_PREFIX, adapterLine, getLearnedAdapter } from './learned-adapter.ts';
import { microConfig, microFactorsOf } from './micro-factors.ts';
import { createMicroStore } from './micro-store.ts';
import { resolveSonaOptions, type SonaOptions } from './options.ts';
import type { InstantOutcome, LearningModel, LearningWork } from './types.ts';

export type InstantReport = Pick<InstantOutcome, 'isApplied' | 'reason' | 'lossBefore' | 'lossAfter' | 'elapsedMs'>;

export interface DeepReport {
  readonly bank: DistillationReport;
  readonly reranker: RerankReport;
  readonly adapter: ConsolidateReport;
}

export interface ForgetReport {
  readonly numTrajectories: number;
  /** Models that had learned from what is gone, and what became of it. */
  readonly relearned: readonly { readonly model: string; readonly reason: string }[];
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
  /** Loop A: what was said of one request. */
  instantAdapt(tenant: string, requestId: string): Promise<InstantReport>;
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
  /** Forgets requests and everything that was learned from them: what learned from them learns anew from the rest. */
  forget(tenant: string, conditions: readonly FieldCondition[]): Promise<ForgetReport>;
  /** Forgets everything that was learned for a model; what it was learned from stays. */
  reset(tenant: string, modelId: string): Promise<void>;
  readonly versions: VersionLog;
  readonly bank: ReasoningBank;
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
  /** Null: no such model is loaded. */
  model(id: string): LearningModel | null;
  createAdapter(architecture: string, factors: readonly LowRankFactors[]): Promise<Adapter>;
  /** Hears of what goes wrong where nobody waits for it. */
  readonly report: (message: string) => void;
  readonly options?: SonaOptions;
}

/** What is in use for a tenant and a model. */
interface Serving {
  factors: readonly LowRankFactors[];
  micro: MicroLoraState | null;
  microFactors: readonly LowRankFactors[];
  learnedFrom: readonly string[];
}

const keyOf = (tenant: string, modelId: string): string => JSON.stringify([tenant, modelId]);
const BACKGROUND_EPOCHS = 3;
const DEEP_EPOCHS = 10;
/** Rated requests below which loop C has no more to say than loop B. */
const MIN_DEEP = 50;

export function createSona(context: SonaContext): Sona {
  const { store, services, trajectories, work } = context;
  const options = resolveSonaOptions(context.options);
  const blobs = createFloatBlobs(store, services);
  const versions = createVersionLog(store, services);
  const micros = createMicroStore(store, services, blobs);
  const checkpoints = createCheckpoints(store, services, blobs);
  const bank = createReasoningBank({ store, services, trajectories, cluster: work.cluster });
  const reranking = createRerankTrainer({ store, services, trajectories, versions, blobs, work, options, report: context.report }); // prettier-ignore
  const shared = { trajectories, versions, blobs, checkpoints, work, services, options };
  const serving = new Map<string, Promise<Serving>>();
  const lines = new Map<string, Promise<unknown>>();
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
  function inTurn<T>(tenant: string, modelId: string, run: () => Promise<T>): Promise<T> {
    const key = keyOf(tenant, modelId);
    const next = (lines.get(key) ?? Promise.resolve()).then(run);
    lines.set(
      key,
      next.catch(() => {}),
    );
    return next;
  }

  async function load(tenant: string, model: LearningModel): Promise<Serving> {
    const version = await versions.active(tenant, adapterLine(model.id));
    const kept = await micros.get(tenant, model.id);
    const factors = version === null ? [] : await factorsOf(tenant, model, version);
    return {
      factors,
      micro: kept?.state ?? null,
      microFactors: microFactorsOf(model, kept?.state ?? null),
      learnedFrom: kept?.learnedFrom ?? [],
    };
  }

  async function factorsOf(tenant: string, model: LearningModel, version: LearnedVersion) {
    const { parameters, rank, numLayers } = await getLearnedAdapter(blobs, tenant, version);
    return work.factorsOf({ path: model.path, rank, numLayers, maxTokens: model.maxTokens }, parameters);
  }

  async function factorsIfAccepted(tenant: string, model: LearningModel, version: LearnedVersion): Promise<void> {
    if (version.isAccepted) await factorsOf(tenant, model, version);
  }

  function servingOf(tenant: string, model: LearningModel): Promise<Serving> {
    const key = keyOf(tenant, model.id);
    const known = serving.get(key);
    if (known !== undefined) return known;
    const loading = load(tenant, model);
    serving.set(key, loading);
    loading.catch(() => serving.delete(key));
    return loading;
  }

  async function serve(tenant: string, model: LearningModel, { factors, microFactors }: Serving): Promise<void> {
    const adapterOf = (some: readonly LowRankFactors[]) =>
      some.length === 0 ? null : context.createAdapter(model.architecture, some);
    await model.serve(tenant, { trained: await adapterOf(factors), instant: await adapterOf(microFactors) });
  }

  async function dropMicro(tenant: string, modelId: string): Promise<void> {
    await micros.delete(tenant, modelId);
    await work.forgetInstant(keyOf(tenant, modelId));
  }

  /** Reads everything anew, and serves it. */
  async function renew(tenant: string, model: LearningModel): Promise<void> {
    serving.delete(keyOf(tenant, model.id));
    await serve(tenant, model, await servingOf(tenant, model));
  }

  async function instant(tenant: string, requestId: string): Promise<InstantReport> {
    const trajectory = await trajectories.get(tenant, requestId);
    if (trajectory === null) {
      throw new RuvLLMError('not_found', `there is no request ${JSON.stringify(requestId.slice(0, 80))} to learn from`);
    }
    const nothing = { isApplied: false, lossBefore: null, lossAfter: null, elapsedMs: 0 };
    const lesson = lessonOf(trajectory);
    if (lesson === null) return { ...nothing, reason: `nothing to learn: the verdict is ${trajectory.verdict}` };
    const model = modelOf(trajectory.model);
    const example = await model.encodeExample(trajectory, lesson.answer);
    if (example === null) return { ...nothing, reason: 'nothing to learn: the prompt was not kept, or is too long' };
    const now = await servingOf(tenant, model);
    const samples = await model.examine(tenant, example);
    const outcome = await work.instant({
      key: keyOf(tenant, model.id),
      config: microConfig(model),
      state: now.micro,
      samples,
      quality: lesson.weight > 0 ? 1 : 0,
      learningRate: options.instantLearningRate,
    });
    if (outcome.state === null) {
      stats.numInstantRefused++;
      return outcome;
    }
    stats.numInstant++;
    now.micro = outcome.state;
    now.microFactors = outcome.factors;
    now.learnedFrom = [...now.learnedFrom, requestId];
    await micros.put(tenant, model.id, { state: outcome.state, learnedFrom: now.learnedFrom });
    await serve(tenant, model, now);
    return outcome;
  }

  async function run(
    tenant: string,
    model: LearningModel,
    how: { loop: LearnedVersion['loop']; limitMs: number; numEpochs: number; isFromScratch: boolean },
    { signal }: RunOptions = {},
  ): Promise<ConsolidateReport> {
    const report = await consolidate(shared, { tenant, model, signal: signal ?? null, ...how });
    if (report.version?.isAccepted) {
      stats.numAccepted++;
      // What single answers taught is in the new version now: twice would be too much.
      await dropMicro(tenant, model.id);
      await renew(tenant, model);
    } else if (report.version !== null) stats.numRefused++;
    return report;
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
    if (last !== null && services.now() - last.createdMs < options.backgroundEveryMs) return false;
    return (await store.count(tenant, ratedOf(modelId))) >= options.minExamples;
  }

  async function relearn(tenant: string, modelId: string, gone: ReadonlySet<string>): Promise<string | null> {
    const model = context.model(modelId);
    const line = adapterLine(modelId);
    const kept = await micros.get(tenant, modelId);
    const isMicro = kept?.learnedFrom.some((id) => gone.has(id)) === true;
    if (isMicro) await dropMicro(tenant, modelId);
    const stained = (await versions.history(tenant, line, 1000)).filter(({ learnedFrom }) =>
      learnedFrom.some((id) => gone.has(id)),
    );
    if (stained.length === 0 && !isMicro) return null;
    const active = await versions.active(tenant, line);
    const isServing = stained.some(({ version }) => version === active?.version);
    // First out of use, then anew: whatever stops in between, what was to be forgotten does not serve.
    if (isServing) await versions.rollback(tenant, line, 0);
    for (const { blobs: names } of stained) for (const blob of Object.values(names)) await blobs.delete(tenant, blob);
    await checkpoints.delete(tenant, line);
    serving.delete(keyOf(tenant, modelId));
    if (model === null)
      return 'the model is not loaded: it will serve as in its file, and can learn anew from what is kept';
    await renew(tenant, model);
    if (!isServing) return 'what single answers taught is gone';
    const how = {
      loop: 'operator',
      limitMs: options.deepLimitMs,
      numEpochs: BACKGROUND_EPOCHS,
      isFromScratch: true,
    } as const;
    const { reason, version } = await run(tenant, model, how);
    return version?.isAccepted
      ? `learned anew from what is kept: ${reason}`
      : `the model serves as in its file: ${reason}`;
  }

  return {
    versions,
    bank,
    reranking,
    instantAdapt: async (tenant, requestId) => {
      const trajectory = await trajectories.get(tenant, requestId);
      return inTurn(tenant, trajectory?.model ?? '', () => instant(tenant, requestId));
    },
    backgroundConsolidate: (tenant, modelId, given) =>
      inTurn(tenant, modelId, () => background(tenant, modelOf(modelId), given)),
    deepOptimize: (tenant, modelId, given) =>
      inTurn(tenant, modelId, async () => {
        stats.numDeep++;
        const report = await bank.distil(tenant);
        const reranker = await reranking.train(tenant, 'deep', given?.signal);
        const how = {
          loop: 'deep',
          limitMs: options.deepLimitMs,
          numEpochs: DEEP_EPOCHS,
          isFromScratch: false,
        } as const;
        return { bank: report, reranker, adapter: await run(tenant, modelOf(modelId), how, given) };
      }),
    shouldTriggerBackground,
    async adapterOf(tenant, modelId, version) {
      const model = modelOf(modelId);
      const found = await versions.get(tenant, adapterLine(modelId), version);
      if (!found.isAccepted) {
        throw new RuvLLMError('conflict', `version ${version} was refused, its weights were not kept: ${found.reason}`);
      }
      return context.createAdapter(model.architecture, await factorsOf(tenant, model, found));
    },
    async maybeBackground(tenant, modelId, given) {
      if (!(await shouldTriggerBackground(tenant, modelId))) return null;
      return inTurn(tenant, modelId, () => background(tenant, modelOf(modelId), given));
    },
    async shouldTriggerDeep(tenant, modelId) {
      const last = await newest(tenant, modelId, 'deep');
      if (last !== null && services.now() - last.createdMs < options.deepEveryMs) return false;
      return (await store.count(tenant, ratedOf(modelId))) >= MIN_DEEP;
    },
    restore: (tenant, modelId) => inTurn(tenant, modelId, () => renew(tenant, modelOf(modelId))),
    rollback: (tenant, modelId, toVersion) =>
      inTurn(tenant, modelId, async () => {
        const model = modelOf(modelId);
        const line = adapterLine(modelId);
        // Read first: one whose weights are gone must not become the one that serves.
        if (toVersion !== 0) await factorsIfAccepted(tenant, model, await versions.get(tenant, line, toVersion));
        const target = await versions.rollback(tenant, line, toVersion);
        await dropMicro(tenant, model.id);
        await renew(tenant, model);
        return target;
      }),
    async forget(tenant, conditions) {
      const gone = new Set(await trajectories.remove(tenant, conditions));
      const relearned: { model: string; reason: string }[] = [];
      if (gone.size > 0) await bank.rebuild(tenant);
      const trained = (await versions.lines(tenant)).filter((line) => line.startsWith(ADAPTER_PREFIX));
      const models = new Set([
        ...trained.map((line) => line.slice(ADAPTER_PREFIX.length)),
        ...(await micros.models(tenant)),
      ]);
      for (const model of models) {
        const reason = await inTurn(tenant, model, () => relearn(tenant, model, gone));
        if (reason !== null) relearned.push({ model, reason });
      }
      relearned.push(...(await forgetRouters({ versions, blobs }, tenant, gone)));
      const ranking = await reranking.forget(tenant, gone);
      if (ranking !== null) relearned.push({ model: RERANKER_LINE, reason: ranking });
      return { numTrajectories: gone.size, relearned };
    },
    reset: (tenant, modelId) =>
      inTurn(tenant, modelId, async () => {
        const model = modelOf(modelId);
        await versions.rollback(tenant, adapterLine(modelId), 0);
        await dropMicro(tenant, model.id);
        await renew(tenant, model);
      }),
    stats: () => ({ ...stats }),
    async close() {
      await Promise.allSettled(lines.values());
    },
  };
}

const ratedOf = (modelId: string) =>
  ({
    kinds: ['trajectory'],
    filter: {
      fields: [
        { field: 'model', is: '=', value: modelId },
        { field: 'verdict', is: 'in', values: ['success', 'failure'] },
      ],
    },
  }) as const;
