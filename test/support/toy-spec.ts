import type { OpenedModel } from '../../src/engine/open-engine.ts';
import type { GenerateRequest, ModelSpec } from '../../src/engine/protocol.ts';
import type { LoadedModel } from '../../src/models/types.ts';

export const TOY_SPEC: ModelSpec = {
  path: 'toy',
  kernels: 'reference',
  gpuLayers: 'auto',
  gpuMemoryBytes: null,
  numThreads: 1,
  maxContext: 512,
  isContextGiven: true,
  maxBatchTokens: 256,
  maxSequences: 8,
  kvCacheTokens: 1024,
  memoryBudgetBytes: null,
  kvPrecision: 'f16',
  kvPacking: 'off',
  prefixCache: true,
  spill: null,
  shared: null,
  blockSalt: null,
  maxWaiting: 1024,
  maxRunningPerTenant: null,
  maxRequestsPerTenant: null,
  memoryLimitBytes: null,
  speculation: 'auto',
  draftPath: null,
  repackCache: 'off',
};

export function toyRequest(
  ask: { promptIds: number[]; maxTokens: number; seed: number },
  stopIds: number[] = [],
): Omit<GenerateRequest, 'id'> {
  return {
    promptIds: ask.promptIds,
    maxTokens: ask.maxTokens,
    stopIds,
    sampling: {
      temperature: 1,
      topK: 0,
      topP: 1,
      minP: 0,
      typicalP: 1,
      repetitionPenalty: 1,
      presencePenalty: 0,
      frequencyPenalty: 0,
      penaltyWindow: 0,
      logitBias: new Map(),
      topLogprobs: null,
      seed: ask.seed,
    },
    tenant: 'tenant',
    cachePrefix: true,
    retention: 'ordinary',
    priority: 0,
    timeoutMs: null,
    grammar: null,
    automata: null,
    adapters: [],
  };
}

/** A model as a platform opens it, without packing or storage. */
export function opened(model: LoadedModel): OpenedModel {
  return {
    model,
    modelHash: 'toy',
    kvPacking: { precision: null, reason: 'a test' },
    spill: null,
    shared: null,
    draftModel: null,
    warn() {},
  };
}
