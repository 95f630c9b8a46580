import type { SampledToken, Tokenizer } from '../../../runtime/lower-layers.ts';
import { addUsage, type LastChunk, type AnswerChunk, hasText } from '../../../runtime/requests/answer-chunks.ts';
import { toWireTimings } from '../llama-server/timings.ts';
import { toChatLogprobs } from './logprobs.ts';
import { toWireUsage } from './usage.ts';

/** Fields of every object of an answer. */
export interface AnswerHead {
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly model: string;
  /** Changes whenever the same seed can produce another text. */
  readonly fingerprint: string;
  /** Further fields, not in OpenAI's API: `memory` where texts were recalled. Streams have them in their first chunk. */
  readonly extensions: object;
}

interface ChoiceParts {
  text: string;
  reasoning: string;
  logprobs: SampledToken[] | null;
  toolCalls: { id: string; name: string; arguments: string }[];
  finished: LastChunk | null;
}

/** Reads a generation to its end and writes the `chat.completion` object. */
export async function writeChatCompletion(
  head: AnswerHead,
  events: AsyncIterable<AnswerChunk>,
  { numChoices, tokenizer }: { numChoices: number; tokenizer: Tokenizer },
): Promise<object> {
  const choices: ChoiceParts[] = Array.from({ length: numChoices }, () => ({
    text: '',
    reasoning: '',
    logprobs: null,
    toolCalls: [],
    finished: null,
  }));
  for await (const event of events) {
    const parts = choices[event.choice]!;
    parts.text += event.text;
    parts.reasoning += event.reasoning;
    if (hasText(event) && event.textLogprobs !== null) (parts.logprobs ??= []).push(...event.textLogprobs);
    for (const { index, id, name, arguments: more } of event.toolCalls) {
      (parts.toolCalls[index] ??= { id, name, arguments: '' }).arguments += more;
    }
    if (event.finishReason !== null) parts.finished = event;
  }
  const finished = choices.map((parts) => parts.finished!);
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: choices.map((parts, index) => ({
      index,
      message: writeMessage(parts),
      logprobs: toChatLogprobs(parts.logprobs, tokenizer),
      finish_reason: parts.finished!.finishReason,
    })),
    usage: toWireUsage(addUsage(finished, numChoices)),
    system_fingerprint: head.fingerprint,
    timings: toWireTimings(finished[0]!),
    ...head.extensions,
  };
}

function writeMessage({ text, reasoning, toolCalls }: ChoiceParts): object {
  const message = {
    role: 'assistant',
    content: text === '' && toolCalls.length > 0 ? null : text,
    refusal: null,
    // Not in OpenAI's API; the name that clients of open models expect.
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
  };
  if (toolCalls.length === 0) return message;
  const calls = toolCalls.map(({ id, name, arguments: args }) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
  }));
  return { ...message, tool_calls: calls };
}
