import { RuvLLMError } from '../../../core/errors.ts';
import type { FinishReason, ToolCallDelta, Usage } from '../../generation-types.ts';
import type { AnswerChunk } from '../answer-chunks.ts';

const REASONS: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'stop',
};
const DONE = '[DONE]';

type Fields = Readonly<Record<string, unknown>>;
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const countOf = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, value as number) : 0);
const indexOf = (value: unknown, count: number): number => {
  if (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < count) return value as number;
  // Not shown if it is a text: that may be a prompt or a key.
  throw broken(typeof value === 'number' ? `an index of ${value}, of ${count}` : 'an index that is no number');
};
const broken = (what: string): RuvLLMError => new RuvLLMError('remote_failed', `it sent ${what}`);

const EMPTY = { text: '', reasoning: '', toolCalls: [], tokenIds: [], logprobs: null, textLogprobs: null };

/** Calls of one answer; more is nonsense. */
const MAX_CALLS = 128;

export interface RemoteEventOptions {
  readonly numChoices: number;
  readonly seed: number;
  readonly now: () => number;
  readonly startMs: number;
}

/** Chunks of OpenAI's streams as chunks of a request; every answer ends with a finish reason, or the stream is broken. */
export async function* readRemoteEvents(
  messages: AsyncIterable<string>,
  { numChoices, seed, now, startMs }: RemoteEventOptions,
): AsyncGenerator<AnswerChunk, void, undefined> {
  const reasons: (FinishReason | null)[] = Array.from({ length: numChoices }, () => null);
  const calls = new Map<string, Pick<ToolCallDelta, 'index' | 'id' | 'name'>>();
  let usage: Usage | null = null;
  let firstMs: number | null = null;

  function readCall(choice: number, given: Fields, at: number): ToolCallDelta {
    const index = indexOf(given['index'] ?? at, MAX_CALLS);
    const { name, arguments: piece } = fieldsOf(given['function']);
    const key = `${choice}/${index}`;
    const isFirst = !calls.has(key);
    if (isFirst && textOf(name) === '') throw broken('a tool call without a name');
    if (isFirst) calls.set(key, { index, id: textOf(given['id']) || `call_${choice}_${index}`, name: textOf(name) });
    return { ...calls.get(key)!, isFirst, arguments: textOf(piece), outcome: null };
  }

  function readChoice(given: Fields): AnswerChunk {
    const choice = indexOf(given['index'] ?? 0, numChoices);
    const delta = fieldsOf(given['delta']);
    const reason = given['finish_reason'];
    if (typeof reason === 'string') reasons[choice] = Object.hasOwn(REASONS, reason) ? REASONS[reason]! : 'stop';
    return {
      ...EMPTY,
      choice,
      reasoning: textOf(delta['reasoning_content']) || textOf(delta['reasoning']),
      text: textOf(delta['content']),
      toolCalls: listOf(delta['tool_calls']).map((call, at) => readCall(choice, fieldsOf(call), at)),
      finishReason: null,
    };
  }

  for await (const message of messages) {
    if (message === DONE) break;
    const chunk = parse(message);
    // Some say in the middle of a stream what went wrong; the words may have a prompt or a key in them.
    if (chunk['error'] !== undefined && chunk['error'] !== null) throw broken('an error in the middle of its answer');
    if (isFields(chunk['usage'])) usage = readUsage(chunk['usage']);
    for (const given of listOf(chunk['choices'])) {
      const answer = readChoice(fieldsOf(given));
      if (answer.text === '' && answer.reasoning === '' && answer.toolCalls.length === 0) continue;
      firstMs ??= now() - startMs;
      yield answer;
    }
  }
  const missing = reasons.indexOf(null);
  if (missing >= 0) throw broken(`an answer that ends in the middle: ${reasons.length} were asked for, number ${missing} has no end`); // prettier-ignore
  const totalMs = now() - startMs;
  yield* reasons.map((reason, choice): AnswerChunk => {
    // It counts all answers together; with the first they are counted once.
    const own = choice === 0 ? (usage ?? NO_USAGE) : NO_USAGE;
    const firstTokenMs = firstMs ?? totalMs;
    const generateMs = totalMs - firstTokenMs;
    const tokensPerSecond = own.completionTokens > 1 && generateMs > 0 ? ((own.completionTokens - 1) * 1000) / generateMs : null; // prettier-ignore
    const timings = { firstTokenMs, queuedMs: 0, promptMs: firstTokenMs, generateMs, promptTokensPerSecond: null, tokensPerSecond }; // prettier-ignore
    return { ...EMPTY, choice, finishReason: reason!, usage: own, timings, seed, stopString: null };
  });
}

/** Used if the remote engine reports no usage. */
const NO_USAGE: Usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0, totalTokens: 0, reasoningTokens: 0, acceptedDraftTokens: 0, rejectedDraftTokens: 0 }; // prettier-ignore

function parse(message: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(message);
  } catch {
    throw broken(`an event of ${message.length} characters that is not JSON`);
  }
  if (isFields(value)) return value;
  throw broken('an event that is no object');
}

function readUsage(given: Fields): Usage {
  const promptTokens = countOf(given['prompt_tokens']);
  const completionTokens = countOf(given['completion_tokens']);
  const details = fieldsOf(given['completion_tokens_details']);
  return {
    promptTokens,
    cachedTokens: Math.min(promptTokens, countOf(fieldsOf(given['prompt_tokens_details'])['cached_tokens'])),
    completionTokens,
    totalTokens: promptTokens + completionTokens,
    reasoningTokens: Math.min(completionTokens, countOf(details['reasoning_tokens'])),
    acceptedDraftTokens: Math.min(completionTokens, countOf(details['accepted_prediction_tokens'])),
    rejectedDraftTokens: countOf(details['rejected_prediction_tokens']),
  };
}
