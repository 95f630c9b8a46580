import { countDrafts } from '../../src/engine/speculation/types.ts';
import { RuvLLMError } from '../../src/core/errors.ts';
import { DEFAULT_SAMPLING } from '../../src/sampling/generate-params.ts';
import type { KvCacheStats } from '../../src/kv-cache/kv-cache.ts';
import type { GenerateChunk } from '../../src/runtime/generation-types.ts';
import type { Model } from '../../src/runtime/model.ts';
import type { ModelInfo } from '../../src/runtime/model-info.ts';
import type { ChatMessage } from '../../src/chat/types.ts';
import type { GenerateOptions } from '../../src/runtime/generate-options.ts';
import type { Prompt } from '../../src/runtime/prompt.ts';

export interface EchoModel extends Model {
  readonly calls: { messages: readonly ChatMessage[]; options: GenerateOptions }[];
  /** While true, answers stop after their first word until they are aborted. */
  isStuck: boolean;
}

/** A model of words: one token per word; the answer repeats the last question after "re:". */
export function createEchoModel(maxContext: number): EchoModel {
  const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '');
  const count = (messages: readonly ChatMessage[]): number => messages.flatMap(({ content }) => words(content)).length;
  const encodePrompt = (prompt: Prompt): number[] =>
    Array.from({ length: count(prompt as readonly ChatMessage[]) }, (_, i) => i);
  const calls: EchoModel['calls'] = [];
  const model: Partial<EchoModel> = {
    calls,
    isStuck: false,
    modelInfo: () => ({ maxContext, sampling: { ...DEFAULT_SAMPLING, source: 'default' } }) as ModelInfo,
    encodePrompt,
    aside: {
      encodePrompt: async (prompt) => encodePrompt(prompt),
      encode: async (text) => words(text).map((_, i) => i),
      decode: async (ids) => Array.from(ids).join(' '),
    },
    stats: async () => ({
      numRunning: 0,
      numWaiting: 0,
      numPages: 1,
      numFreePages: 1,
      numSteps: 3,
      numComputedTokens: 2,
      numGeneratedTokens: 1,
      numPreemptions: 0,
      numRefused: 0,
      numExpired: 0,
      numAdapters: 0,
      drafts: countDrafts(),
      draftBytes: 0,
      cache: {} as KvCacheStats, // Never requested from this model.
    }),
    async *generateStream(prompt, options = {}) {
      const messages = prompt as readonly ChatMessage[];
      calls.push({ messages, options });
      const promptTokens = count(messages);
      if (promptTokens >= maxContext) {
        throw new RuvLLMError('context_overflow', `${promptTokens} of ${maxContext}`, {
          data: { promptTokens, maxContext },
        });
      }
      options.onPrompt?.(promptTokens);
      const answer = ['re:', ...words(messages.at(-1)!.content)];
      const visible = answer.slice(0, options.maxTokens);
      for (const [index, word] of visible.entries()) {
        yield pieceOf(`${index === 0 ? '' : ' '}${word}`, index);
        if (model.isStuck) await aborted(options.signal!);
        if (options.signal?.aborted) throw new RuvLLMError('aborted', 'aborted by the caller');
      }
      yield summaryOf(promptTokens, visible.length, visible.length < answer.length);
    },
  };
  return model as EchoModel;
}

/** A chunk of text in the middle of an answer. */
export function pieceOf(text: string, tokenId: number): GenerateChunk {
  return {
    text,
    reasoning: '',
    toolCalls: [],
    tokenIds: [tokenId],
    logprobs: null,
    textLogprobs: null,
    finishReason: null,
  };
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}

function summaryOf(promptTokens: number, completionTokens: number, isCutOff: boolean): GenerateChunk {
  return {
    text: '',
    reasoning: '',
    toolCalls: [],
    tokenIds: [],
    logprobs: null,
    textLogprobs: null,
    finishReason: isCutOff ? 'length' : 'stop',
    stopString: null,
    seed: 1,
    usage: {
      promptTokens,
      cachedTokens: 0,
      completionTokens,
      totalTokens: promptTokens + completionTokens,
      reasoningTokens: 0,
      acceptedDraftTokens: 0,
      rejectedDraftTokens: 0,
    },
    timings: {
      firstTokenMs: 1,
      queuedMs: 0,
      promptMs: 1,
      generateMs: 1,
      promptTokensPerSecond: 10,
      tokensPerSecond: 20,
    },
  };
}
