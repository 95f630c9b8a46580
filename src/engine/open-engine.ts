import { RuvLLMError } from '../core/errors.ts';
import type { SharedStore } from '../kv-cache/shared-store.ts';
import type { SpillStore } from '../kv-cache/types.ts';
import type { LoadedModel } from '../models/types.ts';
import { createEngine, type Engine } from './engine.ts';
import type { LoadProgress, ModelReport, ModelSpec } from './protocol.ts';

/** A model and the cache key of its pages. */
export interface OpenedModel {
  readonly model: LoadedModel;
  /** Hash of the model file; pages of another model are never used. */
  readonly modelHash: string;
  readonly kvPacking: ModelReport['kvPacking'];
  readonly spill: SpillStore | null;
  /** Storage for pages that other nodes use, too. */
  readonly shared: SharedStore | null;
  /** Drafts tokens of the model; null: none. */
  readonly draftModel: LoadedModel | null;
  /** Reports a problem of the running engine that costs speed only. */
  readonly warn: (message: string) => void;
}

export type OpenModel = (spec: ModelSpec, onProgress: LoadProgress) => Promise<OpenedModel>;

export interface OpenedEngine {
  readonly engine: Engine;
  readonly report: ModelReport;
  readonly warn: (message: string) => void;
}

/** Memory of two models. */
const addMemory = (a: LoadedModel['memory'], b: LoadedModel['memory']): LoadedModel['memory'] => ({
  weightBytes: a.weightBytes + b.weightBytes,
  kvBytes: a.kvBytes + b.kvBytes,
  activationBytes: a.activationBytes + b.activationBytes,
  ...(a.split === undefined ? {} : { split: a.split }),
});

/** The context that packing must not reduce; 0 if packing was requested explicitly without a context. */
function minContextOf({ isContextGiven, kvCacheTokens, kvPacking, maxContext }: ModelSpec): number {
  return isContextGiven || kvCacheTokens !== null || kvPacking === 'auto' ? maxContext : 0;
}

function packingOf({ packsPages }: Engine, planned: ModelReport['kvPacking']): ModelReport['kvPacking'] {
  if (packsPages || planned.precision === null) return planned;
  return { precision: null, reason: `${planned.precision} would shorten the longest sequence that fits` };
}

/** Checked after loading: the longest sequence depends on packing and on whole slabs. */
function checkContext({ maxContext }: Engine, spec: ModelSpec): void {
  if (!spec.isContextGiven || maxContext >= spec.maxContext) return;
  throw new RuvLLMError(
    'out_of_memory',
    `the memory budget holds one sequence of ${maxContext} tokens, ${spec.maxContext} were requested`,
    { data: { heldTokens: maxContext, maxContext: spec.maxContext } },
  );
}

/** Loads a model and creates its engine. */
export async function openEngine(
  spec: ModelSpec,
  open: OpenModel,
  { now, onProgress, onReady }: { now: () => number; onProgress: LoadProgress; onReady: () => void },
): Promise<OpenedEngine> {
  const { model, draftModel, modelHash, kvPacking, spill, shared, warn } = await open(spec, onProgress);
  const engine = createEngine(model, {
    maxContext: spec.maxContext,
    minContext: minContextOf(spec),
    now,
    maxWaiting: spec.maxWaiting,
    maxRunningPerTenant: spec.maxRunningPerTenant ?? Infinity,
    maxRequestsPerTenant: spec.maxRequestsPerTenant ?? Infinity,
    modelHash,
    policy: `${spec.kvPrecision}, older ${kvPacking.precision ?? 'the same'}; ${model.pages.computedBy}`,
    keepsPrefixes: spec.prefixCache,
    speculates: spec.speculation !== 'off',
    speculation: { isForced: spec.speculation === 'on' },
    draftModel,
    warn,
    spill,
    shared: shared === null || spec.shared === null ? null : { store: shared, timeoutMs: spec.shared.timeoutMs },
    onReady,
    blockSalt: spec.blockSalt,
  });
  try {
    checkContext(engine, spec);
  } catch (error) {
    await engine.dispose();
    throw error;
  }
  const { shape, limits, pack } = model;
  const report: ModelReport = {
    shape,
    memory: draftModel === null ? model.memory : addMemory(model.memory, draftModel.memory),
    kernels: pack.name,
    numThreads: pack.numThreads,
    numPages: limits.numPages,
    maxContext: engine.maxContext,
    modelHash,
    kvPacking: packingOf(engine, kvPacking),
  };
  return { engine, report, warn };
}
