import type { ChatMessage, Model } from '../../../../src/browser/index.ts';
import type { AnswerEvent } from '../../api/chat.ts';
import type { ChatRequest, ChatTurn, SamplingOptions } from '../../api/types.ts';
import { messages } from '../../messages/index.ts';

/** The library's names of the options. */
const OPTION_NAMES = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  min_p: 'minP',
  repetition_penalty: 'repetitionPenalty',
  max_tokens: 'maxTokens',
  seed: 'seed',
} as const satisfies Record<keyof SamplingOptions, string>;

type GenerateOptions = NonNullable<Parameters<Model['generateStream']>[1]>;

/** An answer of a model in this tab, as the events of the server's stream. */
export async function* answerInTab(
  model: Model,
  request: ChatRequest,
  signal: AbortSignal,
): AsyncGenerator<AnswerEvent, void, undefined> {
  yield { type: 'origin', origin: { requestId: '', route: null, sources: [] } };
  const { tools = [], continue_final_message: continueFinalMessage = false } = request;
  const options: GenerateOptions = {
    // As the server: an answer without a limit may fill the context.
    maxTokens: model.modelInfo().maxContext,
    clampMaxTokens: true,
    ...readOptions(request),
    ...(tools.length === 0 ? {} : { tools: tools as NonNullable<GenerateOptions['tools']> }), // the library checks them
    ...(continueFinalMessage ? { continueFinalMessage } : {}),
    signal,
  };
  try {
    for await (const chunk of model.generateStream(request.messages.map(readTurn), options)) {
      if (chunk.reasoning !== '') yield { type: 'reasoning', text: chunk.reasoning };
      if (chunk.text !== '') yield { type: 'text', text: chunk.text };
      for (const { index, id, name, arguments: text } of chunk.toolCalls) yield { type: 'call', index, id, name, text };
      if (chunk.finishReason === null) continue;
      yield { type: 'finished', reason: chunk.finishReason, model: request.model };
      const { promptTokens, completionTokens, cachedTokens, reasoningTokens } = chunk.usage;
      yield {
        type: 'usage',
        usage: {
          prompt_tokens: promptTokens,
          completion_tokens: completionTokens,
          prompt_tokens_details: { cached_tokens: cachedTokens },
          completion_tokens_details: { reasoning_tokens: reasoningTokens },
        },
      };
    }
  } catch (error) {
    if (signal.aborted) throw new DOMException('', 'AbortError');
    throw error;
  }
}

function readOptions(request: SamplingOptions): Record<string, number> {
  const entries = Object.entries(OPTION_NAMES) as [keyof SamplingOptions, string][];
  return Object.fromEntries(
    entries.flatMap(([wire, name]) => (request[wire] === undefined ? [] : [[name, request[wire]]])),
  );
}

function readTurn({ role, content, tool_calls: calls, tool_call_id: callId }: ChatTurn): ChatMessage {
  if (typeof content !== 'string') throw new Error(messages.chat.tab.noImages);
  return {
    role,
    content,
    ...(calls === undefined
      ? {}
      : { toolCalls: calls.map(({ id, function: { name, arguments: json } }) => ({ id, name, arguments: json })) }),
    ...(callId === undefined ? {} : { toolCallId: callId }),
  };
}
