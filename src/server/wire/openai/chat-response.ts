import type { SampledToken, Tokenizer, ToolCall } from '../../../runtime/lower-layers.ts';
import { addUsage, type LastChunk, type AnswerChunk, hasText } from '../../../runtime/requests/answer-chunks.ts';
import { toWireTimings } from '../llama-server/timings.ts';
import { writeReflectionBlock } from '../reflection-block.ts';
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
  /** Its JSON text in pieces: 16 answers with 20 alternatives per token take 0.2 s at once. */
  writePieces(head: AnswerHead): Generator<string>;
  /** Whether it is too long to be written at once. */
  readonly isLong: boolean;
}

/** Tokens and alternatives that are written at once: a few milliseconds. */
const PIECE_TOKENS = 2000;

/** Whether the tokens of all choices take too long to be written at once. */
export function isLongToWrite(choices: readonly (readonly SampledToken[] | null)[]): boolean {
  let numTokens = 0;
  for (const tokens of choices) for (const { top } of tokens ?? []) numTokens += 1 + top.length;
  return numTokens > PIECE_TOKENS;
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
    get isLong() {
      return isLongToWrite(choices.map(({ logprobs }) => logprobs));
    },
    write: (head) => ({
      ...writeHead(head),
      choices: choices.map((parts, index) => ({
        ...writeChoice(parts, index, isOlderForm),
        logprobs: toChatLogprobs(parts.logprobs, tokenizer),
      })),
      ...writeTail(head, choices),
    }),
    *writePieces(head) {
      yield `${JSON.stringify(writeHead(head)).slice(0, -1)},"choices":[`;
      for (const [index, parts] of choices.entries()) {
        yield `${index === 0 ? '' : ','}${JSON.stringify(writeChoice(parts, index, isOlderForm)).slice(0, -1)},"logprobs":`;
        yield* writeLogprobs(parts.logprobs, tokenizer);
        yield '}';
      }
      yield `],${JSON.stringify(writeTail(head, choices)).slice(1)}`;
    },
  };
}

/** Reads a generation to its end. */
export async function collectChat(events: AsyncIterable<AnswerChunk>, options: ChatOptions): Promise<ChatCollector> {
  const collector = createChatCollector(options);
  for await (const event of events) collector.add(event);
  return collector;
}

const writeHead = ({ id, created, model }: AnswerHead): object => ({ id, object: 'chat.completion', created, model });

const writeChoice = (parts: ChoiceParts, index: number, isOlderForm: boolean): object => ({
  index,
  message: writeMessage(parts, isOlderForm),
  finish_reason: toFinishReason(parts.finished!.finishReason, isOlderForm),
});

function writeTail(head: AnswerHead, choices: readonly ChoiceParts[]): object {
  const finished = choices.map((parts) => parts.finished!);
  return {
    usage: toWireUsage(addUsage(finished, choices.length)),
    system_fingerprint: head.fingerprint,
    timings: toWireTimings(finished[0]!),
    ...head.extensions,
    ...writeReflectionBlock(finished[0]!),
  };
}

function* writeLogprobs(tokens: readonly SampledToken[] | null, tokenizer: Tokenizer): Generator<string> {
  if (tokens === null) return yield 'null';
  yield '{"content":[';
  for (let from = 0, to = 0; from < tokens.length; from = to) {
    for (let count = 0; to < tokens.length && count < PIECE_TOKENS; to++) count += 1 + tokens[to]!.top.length;
    const content = JSON.stringify(toChatLogprobs(tokens.slice(from, to), tokenizer)!.content).slice(1, -1);
    yield `${from === 0 ? '' : ','}${content}`;
  }
  yield '],"refusal":null}';
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
