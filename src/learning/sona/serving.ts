import type { Adapter, LowRankFactors } from '../../adapters/types.ts';
import type { MicroLoraState } from '../micro-lora/types.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion, VersionLog } from '../versions/version-log.ts';
import { adapterLine, getLearnedAdapter } from './learned-adapter.ts';
import { microFactorsOf } from './micro-factors.ts';
import type { MicroStore } from './micro-store.ts';
import type { InstantOutcome, LearningModel, LearningWork } from './types.ts';

/** What is in use for a tenant and a model. */
export interface Serving {
  /** Of what the loops trained; 0: none. */
  readonly version: number;
  readonly factors: readonly LowRankFactors[];
  micro: MicroLoraState | null;
  microFactors: readonly LowRankFactors[];
  /** Requests that what single answers taught was learned from. */
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

/** What serves each tenant: as it is kept, and as the models have it. */
export function createServings({ versions, blobs, micros, work, createAdapter }: ServingContext) {
  const known = new Map<string, Promise<Serving>>();

  async function factorsOf(tenant: string, model: LearningModel, version: LearnedVersion) {
    const { parameters, rank, numLayers } = await getLearnedAdapter(blobs, tenant, version);
    return work.factorsOf({ path: model.path, rank, numLayers, maxTokens: model.maxTokens }, parameters);
  }

  async function load(tenant: string, model: LearningModel): Promise<Serving> {
    const active = await versions.active(tenant, adapterLine(model.id));
    const version = active?.version ?? 0;
    const kept = await micros.get(tenant, model.id);
    // Taught on top of another version: whatever stopped before it was dropped, what it taught is in this one.
    const micro = kept !== null && kept.baseVersion === version ? kept : null;
    if (kept !== null && micro === null) await dropMicro(tenant, model.id);
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
    const found = known.get(key);
    if (found !== undefined) return found;
    const loading = load(tenant, model);
    known.set(key, loading);
    loading.catch(() => known.delete(key));
    return loading;
  }

  async function serve(tenant: string, model: LearningModel, { factors, microFactors }: Serving): Promise<void> {
    const adapterOf = (some: readonly LowRankFactors[]) =>
      some.length === 0 ? null : createAdapter(model.architecture, some);
    await model.serve(tenant, { trained: await adapterOf(factors), instant: await adapterOf(microFactors) });
  }

  /** What single answers taught. */
  async function dropMicro(tenant: string, modelId: string): Promise<void> {
    await micros.delete(tenant, modelId);
    await work.forgetInstant(servingKey(tenant, modelId));
  }

  return {
    of,
    factorsOf,
    dropMicro,
    /** What is known is read anew the next time. */
    expire: (tenant: string, modelId: string): void => void known.delete(servingKey(tenant, modelId)),
    /** Reads everything anew, and serves it. */
    async renew(tenant: string, model: LearningModel): Promise<void> {
      known.delete(servingKey(tenant, model.id));
      await serve(tenant, model, await of(tenant, model));
    },
    /** Keeps what a single answer taught, then serves it. */
    async addStep(tenant: string, model: LearningModel, requestId: string, outcome: InstantOutcome): Promise<void> {
      const now = await of(tenant, model);
      now.micro = outcome.state;
      now.microFactors = outcome.factors;
      now.learnedFrom = [...now.learnedFrom.filter((id) => id !== requestId), requestId];
      await micros.put(tenant, model.id, {
        state: outcome.state!,
        learnedFrom: now.learnedFrom,
        baseVersion: now.version,
      });
      await serve(tenant, model, now);
    },
    /** The model as in its file, without a look at what is kept: that is about to go. */
    async forgetTenant(tenant: string, model: LearningModel): Promise<void> {
      known.delete(servingKey(tenant, model.id));
      await work.forgetInstant(servingKey(tenant, model.id));
      await model.serve(tenant, { trained: null, instant: null });
    },
  };
}
export type Servings = ReturnType<typeof createServings>;
