import type { Prompt } from '../../../runtime/prompt.ts';
import type { SampledToken, Tokenizer } from '../../../runtime/lower-layers.ts';
import { addUsage, type AnswerChunk, hasText, type LastChunk } from '../../../runtime/requests/answer-chunks.ts';
import type { SseMessage } from '../../sse.ts';
import type { AnswerHead } from './chat-response.ts';
import { DONE } from './chat-stream.ts';
import type { CompletionRequest } from './completion-request.ts';
import { createCompletionLogprobs } from './completion-logprobs.ts';
import { toWireTimings } from '../llama-server/timings.ts';
import { toWireUsage } from './usage.ts';

export interface CompletionOptions extends Omit<CompletionRequest, 'isStream'> {
  readonly tokenizer: Tokenizer;
}

/** Without BOS that was added to a text: clients compare the tokens with those of their text. */
function scoredTokens({ generation, tokenizer }: CompletionOptions, end: LastChunk): readonly SampledToken[] {
  const tokens = end.promptLogprobs ?? [];
  const isText = typeof generation.prompts[Math.floor(end.choice / generation.numChoices)] === 'string';
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

/** Reads a generation to its end and writes the `text_completion` object. */
export async function writeCompletion(
  head: AnswerHead,
  events: AsyncIterable<AnswerChunk>,
  options: CompletionOptions,
): Promise<object> {
  const texts = startTexts(options);
  const logprobs: (SampledToken[] | null)[] = texts.map(() => null);
  const finished: LastChunk[] = [];
  for await (const event of events) {
    if (event.finishReason !== null) finished[event.choice] = event;
    if (options.isPromptOnly) continue;
    texts[event.choice] += event.text;
    if (hasText(event) && event.textLogprobs !== null) (logprobs[event.choice] ??= []).push(...event.textLogprobs);
  }
  return {
    id: head.id,
    object: 'text_completion',
    created: head.created,
    model: head.model,
    choices: texts.map((text, index) => ({
      text,
      index,
      logprobs: createCompletionLogprobs(options.tokenizer)(
        finished[index]!.promptLogprobs === undefined
          ? logprobs[index]!
          : [...scoredTokens(options, finished[index]!), ...(logprobs[index] ?? [])],
        finished[index]!.promptLogprobs !== undefined,
      ),
      finish_reason: finished[index]!.finishReason,
    })),
    usage: toWireUsage({
      ...addUsage(finished, options.generation.numChoices),
      ...(options.isPromptOnly ? { completionTokens: 0 } : {}),
    }),
    system_fingerprint: head.fingerprint,
    timings: toWireTimings(finished[0]!),
    ...head.extensions,
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
