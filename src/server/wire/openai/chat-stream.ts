import type { Tokenizer } from '../../../runtime/lower-layers.ts';
import { addUsage, type FinishedEvent, type AnswerEvent } from '../../../runtime/requests/answer-events.ts';
import type { SseMessage } from '../../sse.ts';
import type { AnswerHead } from './chat-response.ts';
import { toChatLogprobs } from './logprobs.ts';
import { toWireUsage } from './usage.ts';

export interface ChatStreamOptions {
  readonly numChoices: number;
  readonly tokenizer: Tokenizer;
  /** Whether the last chunk says the usage, and all others that it is null. */
  readonly hasUsageChunk: boolean;
}

/** Marks the end of every stream of this API. */
export const DONE: SseMessage = { data: '[DONE]' };

/** The chunks of a streamed chat: role first, deltas, finish reason, usage where asked for, `[DONE]`. */
export async function* writeChatStream(
  head: AnswerHead,
  events: AsyncIterable<AnswerEvent>,
  { numChoices, tokenizer, hasUsageChunk }: ChatStreamOptions,
): AsyncGenerator<SseMessage, void, undefined> {
  const finished: FinishedEvent[] = [];
  const write = (choices: readonly object[], usage: object | null): SseMessage => ({
    data: JSON.stringify({
      id: head.id,
      object: 'chat.completion.chunk',
      created: head.created,
      model: head.model,
      system_fingerprint: head.fingerprint,
      choices,
      ...(hasUsageChunk ? { usage } : {}),
    }),
  });
  const chunk = (index: number, delta: object, logprobs: object | null, finishReason: string | null): SseMessage =>
    write([{ index, delta, logprobs, finish_reason: finishReason }], null);

  for (let index = 0; index < numChoices; index++) {
    yield chunk(index, { role: 'assistant', content: '', refusal: null }, null, null);
  }
  for await (const event of events) {
    if (event.type === 'text') {
      yield chunk(event.choice, { content: event.text }, toChatLogprobs(event.logprobs, tokenizer), null);
    } else if (event.type === 'reasoning') {
      yield chunk(event.choice, { reasoning_content: event.text }, null, null);
    } else if (event.type === 'tool_call') {
      yield chunk(event.choice, { tool_calls: [toolCallDelta(event)] }, null, null);
    } else {
      finished.push(event);
      yield chunk(event.choice, {}, null, event.finishReason);
    }
  }
  if (hasUsageChunk) yield write([], toWireUsage(addUsage(finished, numChoices)));
  yield DONE;
}

function toolCallDelta({ call, id, name, arguments: args }: Extract<AnswerEvent, { type: 'tool_call' }>): object {
  if (id === null) return { index: call, function: { arguments: args } };
  return { index: call, id, type: 'function', function: { name, arguments: args } };
}
