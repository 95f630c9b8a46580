import type { GenerateRequest, ModelSpec } from '../../src/engine/protocol.ts';

export const TOY_SPEC: ModelSpec = {
  path: 'toy',
  kernels: 'reference',
  numThreads: 1,
  maxContext: 512,
  maxBatchTokens: 256,
  maxSequences: 8,
  numPages: 64,
  kvPrecision: 'f16',
  memoryLimitBytes: null,
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
  };
}
