import type { SampledToken, TokenLogprob, Tokenizer } from '../../../runtime/lower-layers.ts';
import { type AnswerChunk, hasText, type LastChunk } from '../../../runtime/requests/answer-chunks.ts';
import type { SseMessage } from '../../sse.ts';
import { finite, spellToken } from '../openai/logprobs.ts';
import type { NativeRequest } from './completion-request.ts';
import { toWireTimings } from './timings.ts';

export interface NativeAnswer {
  readonly model: string;
  readonly tokenizer: Tokenizer;
  readonly request: NativeRequest;
}

/** Reads a generation to its end; one object, or a list of them for several prompts. */
export async function writeNativeCompletion(answer: NativeAnswer, events: AsyncIterable<AnswerChunk>): Promise<object> {
  const { prompts } = answer.request.generation;
  const parts = prompts.map(() => ({ text: '', tokens: [] as number[], sampled: null as SampledToken[] | null }));
  const ends: LastChunk[] = [];
  for await (const event of events) {
    const part = parts[event.choice]!;
    part.text += event.text;
    part.tokens.push(...event.tokenIds);
    if (hasText(event) && event.textLogprobs !== null) (part.sampled ??= []).push(...event.textLogprobs);
    if (event.finishReason !== null) ends[event.choice] = event;
  }
  const objects = parts.map(({ text, tokens, sampled }, index) =>
    writeEnd(answer, ends[index]!, text, tokens, sampled),
  );
  return objects.length === 1 ? objects[0]! : objects;
}

/** The pieces of each answer; the last one of each has `stop` and the figures, as in llama-server. */
export async function* writeNativeStream(
  answer: NativeAnswer,
  events: AsyncIterable<AnswerChunk>,
): AsyncGenerator<SseMessage, void, undefined> {
  const counts = answer.request.generation.prompts.map(() => 0);
  // A token may end inside a character: its text, and its id with it, comes with a later piece.
  const pendingIds = answer.request.generation.prompts.map((): number[] => []);
  const write = (value: object): SseMessage => ({ data: JSON.stringify(value) });
  for await (const event of events) {
    const index = event.choice;
    counts[index]! += event.tokenIds.length;
    pendingIds[index]!.push(...event.tokenIds);
    if (hasText(event) && !answer.request.isPromptOnly) {
      yield write({
        index,
        content: event.text,
        tokens: pendingIds[index]!.splice(0),
        stop: false,
        id_slot: -1,
        tokens_predicted: counts[index],
        ...probabilities(answer, event.textLogprobs),
      });
    }
    if (event.finishReason !== null) yield write(writeEnd(answer, event, '', [], null));
  }
}

function writeEnd(
  answer: NativeAnswer,
  end: LastChunk,
  text: string,
  tokens: readonly number[],
  sampled: readonly SampledToken[] | null,
): object {
  const { generation, isPromptOnly, hasTokens } = answer.request;
  const { options } = generation;
  const prompt = generation.prompts[end.choice]!;
  return {
    index: end.choice,
    content: isPromptOnly ? '' : text,
    tokens: hasTokens && !isPromptOnly ? tokens : [],
    id_slot: -1,
    stop: true,
    model: answer.model,
    tokens_predicted: isPromptOnly ? 0 : end.usage.completionTokens,
    tokens_evaluated: end.usage.promptTokens,
    tokens_cached: end.usage.cachedTokens,
    generation_settings: {
      n_predict: options.maxTokens ?? -1,
      seed: end.seed,
      temperature: options.temperature,
      top_k: options.topK,
      top_p: options.topP,
      min_p: options.minP,
      typical_p: options.typicalP ?? 1,
      repeat_penalty: options.repetitionPenalty ?? 1,
      repeat_last_n: options.penaltyWindow ?? 64,
      presence_penalty: options.presencePenalty ?? 0,
      frequency_penalty: options.frequencyPenalty ?? 0,
      stop: options.stop ?? [],
      ignore_eos: options.ignoreEos ?? false,
    },
    prompt: typeof prompt === 'string' ? prompt : answer.tokenizer.decode(prompt as readonly number[]),
    truncated: false,
    stop_type: end.finishReason === 'length' ? 'limit' : end.stopString === null ? 'eos' : 'word',
    stopping_word: end.stopString ?? '',
    ...(isPromptOnly ? {} : probabilities(answer, sampled)),
    timings: toWireTimings(end),
  };
}

/** `completion_probabilities` where they were requested. */
function probabilities({ tokenizer }: NativeAnswer, sampled: readonly SampledToken[] | null): object {
  if (sampled === null) return {};
  const write = ({ tokenId, logprob }: TokenLogprob) => {
    const { token, bytes } = spellToken(tokenId, tokenizer);
    return { id: tokenId, token, bytes: bytes ?? [], logprob: finite(logprob) };
  };
  return {
    completion_probabilities: sampled.map(({ tokenId, logprob, top }) => ({
      ...write({ tokenId, logprob: logprob ?? -Infinity }),
      top_logprobs: top.map(write),
    })),
  };
}
