import type { Adapter, LowRankFactors } from '../../adapters/types.ts';
import type { MicroLoraState } from '../micro-lora/types.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion, VersionLog } from '../versions/version-log.ts';
import { adapterLine, getLearnedAdapter, planOf } from './learned-adapter.ts';
import { isMicroState, microFactorsOf } from './micro-factors.ts';
import type { MicroStore } from './micro-store.ts';
import type { InstantOutcome, LearningModel, LearningWork } from './types.ts';

/** The adapters in use for a tenant and a model. */
export interface Serving {
  /** Active version; 0: none. */
  readonly version: number;
  readonly factors: readonly LowRankFactors[];
  micro: MicroLoraState | null;
  microFactors: readonly LowRankFactors[];
  /** Requests that `micro` learned from. */
  learnedFrom: readonly string[];
}

export interface ServingContext {
  readonly versions: VersionLog;
  readonly blobs: FloatBlobs;
  readonly micros: MicroStore;
  readonly work: LearningWork;
  createAdapter(architecture: string, factors: readonly LowRankFactors[]): Promise<Adapter>;
}

export const servingKey = (tenant: string, modelId: string): string => JSON.stringify([tenant, modelId]);

/** Keeps the adapters of each tenant in step with the store and the models. */
export function createServings({ versions, blobs, micros, work, createAdapter }: ServingContext) {
  const cache = new Map<string, Promise<Serving>>();

  async function factorsOf(tenant: string, model: LearningModel, version: LearnedVersion) {
    const { parameters, rank, numLayers } = await getLearnedAdapter(blobs, tenant, version);
    return work.factorsOf(planOf(model, rank, numLayers), parameters);
  }

  async function load(tenant: string, model: LearningModel): Promise<Serving> {
    const active = await versions.active(tenant, adapterLine(model.id));
    const version = active?.version ?? 0;
    const stored = await micros.get(tenant, model.id);
    // Steps on top of another version: a crash kept them from being dropped, and the active version contains them.
    const isUsable = stored !== null && stored.baseVersion === version && isMicroState(model, stored.state);
    const micro = isUsable ? stored : null;
    if (stored !== null && micro === null) await dropMicro(tenant, model.id);
    return {
      version,
      factors: active === null ? [] : await factorsOf(tenant, model, active),
      micro: micro?.state ?? null,
      microFactors: microFactorsOf(model, micro?.state ?? null),
      learnedFrom: micro?.learnedFrom ?? [],
    };
  }

  function of(tenant: string, model: LearningModel): Promise<Serving> {
    const key = servingKey(tenant, model.id);
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    const loading = load(tenant, model);
    cache.set(key, loading);
    loading.catch(() => cache.delete(key));
    return loading;
  }

  async function serve(tenant: string, model: LearningModel, { factors, microFactors }: Serving): Promise<void> {
    const adapterOf = (some: readonly LowRankFactors[]) =>
      some.length === 0 ? null : createAdapter(model.architecture, some);
    await model.serve(tenant, { trained: await adapterOf(factors), instant: await adapterOf(microFactors) });
  }

  async function dropMicro(tenant: string, modelId: string): Promise<void> {
    await micros.delete(tenant, modelId);
    await work.forgetInstant(servingKey(tenant, modelId));
  }

  return {
    of,
    factorsOf,
    dropMicro,
    /** The next use reads from the store. */
    expire: (tenant: string, modelId: string): void => void cache.delete(servingKey(tenant, modelId)),
    /** Reads from the store and serves it. */
    async renew(tenant: string, model: LearningModel): Promise<void> {
      cache.delete(servingKey(tenant, model.id));
      await serve(tenant, model, await of(tenant, model));
    },
    /** Stores a step of loop A, then serves it. */
    async addStep(tenant: string, model: LearningModel, requestId: string, outcome: InstantOutcome): Promise<void> {
      const serving = await of(tenant, model);
      serving.micro = outcome.state;
      serving.microFactors = outcome.factors;
      serving.learnedFrom = [...serving.learnedFrom.filter((id) => id !== requestId), requestId];
      await micros.put(tenant, model.id, {
        state: outcome.state!,
        learnedFrom: serving.learnedFrom,
        baseVersion: serving.version,
      });
      await serve(tenant, model, serving);
    },
    /** Serves the model as in its file; the store, about to be erased, is not read. */
    async forgetTenant(tenant: string, model: LearningModel): Promise<void> {
      cache.delete(servingKey(tenant, model.id));
      await work.forgetInstant(servingKey(tenant, model.id));
      await model.serve(tenant, { trained: null, instant: null });
    },
  };
}
export type Servings = ReturnType<typeof createServings>;
