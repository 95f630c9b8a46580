import type { Tokenizer } from '../../../runtime/lower-layers.ts';
import type { ToolCallDelta } from '../../../runtime/generation-types.ts';
import { addUsage, type AnswerChunk, hasText, type LastChunk } from '../../../runtime/requests/answer-chunks.ts';
import type { SseMessage } from '../../sse.ts';
import { toWireTimings } from '../llama-server/timings.ts';
import { writeReflectionBlock } from '../reflection-block.ts';
import { type AnswerHead, toFinishReason } from './chat-response.ts';
import { toChatLogprobs } from './logprobs.ts';
import { toWireUsage } from './usage.ts';

export interface ChatStreamOptions {
  readonly numChoices: number;
  readonly tokenizer: Tokenizer;
  /** Whether the last chunk contains the usage; in the others it is null. */
  readonly hasUsageChunk: boolean;
  /** Whether calls have the older form, `function_call`. */
  readonly isOlderForm: boolean;
}

/** Marks the end of every stream of this API. */
export const DONE: SseMessage = { data: '[DONE]' };

/** The chunks of a streamed chat: role, deltas, finish reason, usage if requested, `[DONE]`. */
export async function* writeChatStream(
  head: AnswerHead,
  events: AsyncIterable<AnswerChunk>,
  { numChoices, tokenizer, hasUsageChunk, isOlderForm }: ChatStreamOptions,
): AsyncGenerator<SseMessage, void, undefined> {
  const finished: LastChunk[] = [];
  let extensions = head.extensions;
  const write = (choices: readonly object[], usage: object | null, figures: object = {}): SseMessage => ({
    data: JSON.stringify({
      id: head.id,
      object: 'chat.completion.chunk',
      created: head.created,
      model: head.model,
      system_fingerprint: head.fingerprint,
      choices,
      ...(hasUsageChunk ? { usage } : {}),
      ...extensions,
      ...figures,
    }),
  });
  const chunk = (index: number, delta: object, logprobs: object | null = null): SseMessage =>
    write([{ index, delta, logprobs, finish_reason: null }], null);

  for (let index = 0; index < numChoices; index++) {
    yield chunk(index, { role: 'assistant', content: '', refusal: null });
    extensions = {};
  }
  for await (const answer of events) {
    const { choice, reasoning, text, textLogprobs, toolCalls } = answer;
    if (reasoning !== '') yield chunk(choice, { reasoning_content: reasoning });
    if (hasText(answer)) yield chunk(choice, { content: text }, toChatLogprobs(textLogprobs, tokenizer));
    for (const call of toolCalls) {
      if (!call.isFirst && call.arguments === '') continue;
      yield chunk(choice, isOlderForm ? { function_call: functionDelta(call) } : { tool_calls: [toolCallDelta(call)] });
    }
    if (answer.finishReason === null) continue;
    finished.push(answer);
    const finishReason = toFinishReason(answer.finishReason, isOlderForm);
    yield write([{ index: choice, delta: {}, logprobs: null, finish_reason: finishReason }], null, { timings: toWireTimings(answer), ...writeReflectionBlock(answer) }); // prettier-ignore
  }
  if (hasUsageChunk) yield write([], toWireUsage(addUsage(finished, numChoices)));
  yield DONE;
}

function toolCallDelta(call: ToolCallDelta): object {
  const { index, id, isFirst } = call;
  return { index, ...(isFirst ? { id, type: 'function' } : {}), function: functionDelta(call) };
}

const functionDelta = ({ name, isFirst, arguments: args }: ToolCallDelta): object =>
  isFirst ? { name, arguments: args } : { arguments: args };
