import type { GenerateChunk, Model, ModelInfo } from 'ruvllm';

/** A model that answers at once: the remaining time is the server's. */
export function createInstantModel(text = 'ok'): Model {
  const info = { maxContext: 4096, kernels: 'none', memory: { totalBytes: 0 } } as ModelInfo;
  const done: GenerateChunk = {
    text,
    reasoning: '',
    toolCalls: [],
    tokenIds: [1],
    logprobs: null,
    textLogprobs: null,
    finishReason: 'stop',
    stopString: null,
    seed: 1,
    usage: {
      promptTokens: 1,
      cachedTokens: 0,
      completionTokens: 1,
      totalTokens: 2,
      reasoningTokens: 0,
      acceptedDraftTokens: 0,
      rejectedDraftTokens: 0,
    },
    timings: {
      firstTokenMs: 0,
      queuedMs: 0,
      promptMs: 0,
      generateMs: 0,
      promptTokensPerSecond: 0,
      tokensPerSecond: 0,
    },
  };
  const model: Partial<Model> = {
    modelInfo: () => info,
    onLost() {},
    isLoaded: () => true,
    encodePrompt: () => [1],
    async *generateStream() {
      yield done;
    },
    dispose: async () => {},
  };
  return model as Model;
}
