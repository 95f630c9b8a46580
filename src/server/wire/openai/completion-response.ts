import type { Prompt } from '../../../runtime/prompt.ts';
import type { SampledToken, Tokenizer } from '../../../runtime/lower-layers.ts';
import { addUsage, type AnswerChunk, hasText, type LastChunk } from '../../../runtime/requests/answer-chunks.ts';
import type { GenerationRequest } from '../../../runtime/requests/generation-request.ts';
import type { SseMessage } from '../../sse.ts';
import type { AnswerHead } from './chat-response.ts';
import { DONE } from './chat-stream.ts';
import { createCompletionLogprobs } from './completion-logprobs.ts';
import { toWireUsage } from './usage.ts';

export interface CompletionOptions {
  readonly generation: GenerationRequest;
  readonly tokenizer: Tokenizer;
  readonly hasEcho: boolean;
  readonly hasUsageChunk: boolean;
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
    texts[event.choice] += event.text;
    if (hasText(event) && event.textLogprobs !== null) (logprobs[event.choice] ??= []).push(...event.textLogprobs);
    if (event.finishReason !== null) finished[event.choice] = event;
  }
  return {
    id: head.id,
    object: 'text_completion',
    created: head.created,
    model: head.model,
    choices: texts.map((text, index) => ({
      text,
      index,
      logprobs: createCompletionLogprobs(options.tokenizer)(logprobs[index]!),
      finish_reason: finished[index]!.finishReason,
    })),
    usage: toWireUsage(addUsage(finished, options.generation.numChoices)),
    system_fingerprint: head.fingerprint,
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
    if (hasText(event)) {
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
