import type { SampledToken, Tokenizer, ToolCall } from '../../../runtime/lower-layers.ts';
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

/** Collects the events of an answer. */
export interface ChatCollector {
  add(event: AnswerChunk): void;
  /** The `chat.completion` object, after the last event. */
  write(head: AnswerHead): object;
}

interface ChatOptions {
  readonly numChoices: number;
  readonly tokenizer: Tokenizer;
  readonly isOlderForm: boolean;
}

export function createChatCollector({ numChoices, tokenizer, isOlderForm }: ChatOptions): ChatCollector {
  const choices: ChoiceParts[] = Array.from({ length: numChoices }, () => ({
    text: '',
    reasoning: '',
    logprobs: null,
    toolCalls: [],
    finished: null,
  }));
  return {
    add(event) {
      const parts = choices[event.choice]!;
      parts.text += event.text;
      parts.reasoning += event.reasoning;
      if (hasText(event) && event.textLogprobs !== null) (parts.logprobs ??= []).push(...event.textLogprobs);
      for (const { index, id, name, arguments: more } of event.toolCalls) {
        (parts.toolCalls[index] ??= { id, name, arguments: '' }).arguments += more;
      }
      if (event.finishReason !== null) parts.finished = event;
    },
    write: (head) => writeChoices(head, choices, { tokenizer, isOlderForm }),
  };
}

/** Reads a generation to its end and writes the `chat.completion` object. */
export async function writeChatCompletion(
  head: AnswerHead,
  events: AsyncIterable<AnswerChunk>,
  options: ChatOptions,
): Promise<object> {
  const collector = createChatCollector(options);
  for await (const event of events) collector.add(event);
  return collector.write(head);
}

function writeChoices(
  head: AnswerHead,
  choices: readonly ChoiceParts[],
  { tokenizer, isOlderForm }: Omit<ChatOptions, 'numChoices'>,
): object {
  const finished = choices.map((parts) => parts.finished!);
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: choices.map((parts, index) => ({
      index,
      message: writeMessage(parts, isOlderForm),
      logprobs: toChatLogprobs(parts.logprobs, tokenizer),
      finish_reason: toFinishReason(parts.finished!.finishReason, isOlderForm),
    })),
    usage: toWireUsage(addUsage(finished, choices.length)),
    system_fingerprint: head.fingerprint,
    timings: toWireTimings(finished[0]!),
    ...head.extensions,
  };
}

/** The reason a text ended; calls have another name in the older form. */
export const toFinishReason = (reason: LastChunk['finishReason'], isOlderForm: boolean): string =>
  reason === 'tool_calls' && isOlderForm ? 'function_call' : reason;

function writeMessage({ text, reasoning, toolCalls }: ChoiceParts, isOlderForm: boolean): object {
  const message = {
    role: 'assistant',
    content: text === '' && toolCalls.length > 0 ? null : text,
    refusal: null,
    // Not in OpenAI's API; the name that clients of open models expect.
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
  };
  if (toolCalls.length === 0) return message;
  if (isOlderForm)
    return { ...message, function_call: { name: toolCalls[0]!.name, arguments: toolCalls[0]!.arguments } };
  return { ...message, tool_calls: writeToolCalls(toolCalls) };
}

export function writeToolCalls(calls: readonly ToolCall[]): readonly object[] {
  return calls.map(({ id, name, arguments: args }) => ({ id, type: 'function', function: { name, arguments: args } }));
}
