import type { Prompt } from '../../../runtime/prompt.ts';
import type { SampledToken, Tokenizer } from '../../../runtime/lower-layers.ts';
import { addUsage, type AnswerChunk, hasText, type LastChunk } from '../../../runtime/requests/answer-chunks.ts';
import type { SseMessage } from '../../sse.ts';
import { type AnswerHead, isLongToWrite } from './chat-response.ts';
import { DONE } from './chat-stream.ts';
import type { CompletionRequest } from './completion-request.ts';
import { createCompletionLogprobs } from './completion-logprobs.ts';
import { toWireTimings } from '../llama-server/timings.ts';
import { toWireUsage } from './usage.ts';

export interface CompletionOptions extends Omit<CompletionRequest, 'isStream'> {
  readonly tokenizer: Tokenizer;
}

/** Without BOS that was added to a text: clients compare the tokens with those of their text. */
function scoredTokens(
  { generation, tokenizer }: CompletionOptions,
  choice: number,
  tokens: readonly SampledToken[],
): readonly SampledToken[] {
  const isText = typeof generation.prompts[Math.floor(choice / generation.numChoices)] === 'string';
  return isText && tokens[0]?.tokenId === tokenizer.bosId ? tokens.slice(1) : tokens;
}

/** The first text of each answer: the prompt with `echo`. */
function startTexts({ generation, tokenizer, hasEcho }: CompletionOptions): string[] {
  const textOf = (prompt: Prompt): string =>
    typeof prompt === 'string' ? prompt : tokenizer.decode(prompt as readonly number[]);
  return generation.prompts.flatMap((prompt) =>
    Array<string>(generation.numChoices).fill(hasEcho ? textOf(prompt) : ''),
  );
}

export interface CollectedCompletion {
  /** The `text_completion` object. */
  write(): object;
  /** Its JSON text, one choice after the other. */
  writePieces(): Generator<string>;
  /** Whether it is too long to be written at once. */
  readonly isLong: boolean;
}

/** Reads a generation to its end. */
export async function collectCompletion(
  head: AnswerHead,
  events: AsyncIterable<AnswerChunk>,
  options: CompletionOptions,
): Promise<CollectedCompletion> {
  const texts = startTexts(options);
  const logprobs: (SampledToken[] | null)[] = texts.map(() => null);
  const finished: LastChunk[] = [];
  for await (const event of events) {
    if (event.finishReason !== null) finished[event.choice] = event;
    if (options.isPromptOnly) continue;
    texts[event.choice] += event.text;
    if (hasText(event) && event.textLogprobs !== null) (logprobs[event.choice] ??= []).push(...event.textLogprobs);
  }
  const tokensOf = (index: number): readonly SampledToken[] | null => {
    const { promptLogprobs } = finished[index]!;
    if (promptLogprobs === undefined) return logprobs[index]!;
    return [...scoredTokens(options, index, promptLogprobs), ...(logprobs[index] ?? [])];
  };
  const writeChoice = (text: string, index: number): object => ({
    text,
    index,
    logprobs: createCompletionLogprobs(options.tokenizer)(
      tokensOf(index),
      finished[index]!.promptLogprobs !== undefined,
    ),
    finish_reason: finished[index]!.finishReason,
  });
  const start = { id: head.id, object: 'text_completion', created: head.created, model: head.model };
  const end = {
    usage: toWireUsage({
      ...addUsage(finished, options.generation.numChoices),
      ...(options.isPromptOnly ? { completionTokens: 0 } : {}),
    }),
    system_fingerprint: head.fingerprint,
    timings: toWireTimings(finished[0]!),
    ...head.extensions,
  };
  return {
    write: () => ({ ...start, choices: texts.map(writeChoice), ...end }),
    *writePieces() {
      yield `${JSON.stringify(start).slice(0, -1)},"choices":[`;
      for (const [index, text] of texts.entries()) {
        yield `${index === 0 ? '' : ','}${JSON.stringify(writeChoice(text, index))}`;
      }
      yield `],${JSON.stringify(end).slice(1)}`;
    },
    get isLong() {
      return isLongToWrite(texts.map((_, index) => tokensOf(index)));
    },
  };
}

export async function* writeCompletionStream(
  head: AnswerHead,
  events: AsyncIterable<AnswerChunk>,
  options: CompletionOptions,
): AsyncGenerator<SseMessage, void, undefined> {
  const { tokenizer, hasUsageChunk, hasEcho } = options;
  const texts = startTexts(options);
  const toLogprobs = texts.map(() => createCompletionLogprobs(tokenizer));
  const finished: LastChunk[] = [];
  let extensions = head.extensions;
  const write = (choices: readonly object[], usage: object | null): SseMessage => {
    const data = JSON.stringify({
      id: head.id,
      object: 'text_completion',
      created: head.created,
      model: head.model,
      system_fingerprint: head.fingerprint,
      choices,
      ...(hasUsageChunk ? { usage } : {}),
      ...extensions,
    });
    extensions = {};
    return { data };
  };
  if (hasEcho) {
    for (const [index, text] of texts.entries())
      yield write([{ text, index, logprobs: null, finish_reason: null }], null);
  }
  for await (const event of events) {
    const index = event.choice;
    if (hasText(event) && !options.isPromptOnly) {
      const logprobs = toLogprobs[index]!(event.textLogprobs);
      yield write([{ text: event.text, index, logprobs, finish_reason: null }], null);
    }
    if (event.finishReason === null) continue;
    finished.push(event);
    yield write([{ text: '', index, logprobs: null, finish_reason: event.finishReason }], null);
  }
  if (hasUsageChunk) yield write([], toWireUsage(addUsage(finished, options.generation.numChoices)));
  yield DONE;
}
