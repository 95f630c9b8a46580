import { RuvLLMError } from '../../../core/errors.ts';
import type { FinishReason, Usage } from '../../generation-types.ts';
import type { AnswerEvent, FinishedEvent } from '../answer-events.ts';

const REASONS: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'stop',
};
const DONE = '[DONE]';

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const countOf = (value: unknown): number => (Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0); // prettier-ignore
const indexOf = (value: unknown, count: number): number => {
  if (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < count) return value as number;
  throw broken(`an index of ${String(value).slice(0, 20)}, of ${count}`);
};
const broken = (what: string): RuvLLMError => new RuvLLMError('remote_failed', `it sent ${what}`);

/** Calls of one answer; more is nonsense. */
const MAX_CALLS = 128;

export interface RemoteEventOptions {
  readonly numChoices: number;
  readonly seed: number;
  readonly now: () => number;
  readonly startMs: number;
}

/** Chunks of OpenAI's streams as events of a request; every answer ends with `finished`, or the stream is broken. */
export async function* readRemoteEvents(
  messages: AsyncIterable<string>,
  { numChoices, seed, now, startMs }: RemoteEventOptions,
): AsyncGenerator<AnswerEvent, void, undefined> {
  const reasons: (FinishReason | null)[] = Array.from({ length: numChoices }, () => null);
  const known = new Set<string>();
  let usage: Usage | null = null;
  let firstMs: number | null = null;

  function* readChoice(given: Fields): Generator<AnswerEvent, void, undefined> {
    const choice = indexOf(given['index'] ?? 0, numChoices);
    const delta = fieldsOf(given['delta']);
    const reasoning = textOf(delta['reasoning_content']) || textOf(delta['reasoning']);
    const text = textOf(delta['content']);
    if (reasoning !== '') yield { type: 'reasoning', choice, text: reasoning };
    if (text !== '') yield { type: 'text', choice, text, logprobs: null };
    for (const [at, one] of listOf(delta['tool_calls']).map(fieldsOf).entries()) {
      const call = indexOf(one['index'] ?? at, MAX_CALLS);
      const { name, arguments: piece } = fieldsOf(one['function']);
      const key = `${choice}/${call}`;
      const isFirst = !known.has(key);
      known.add(key);
      if (isFirst && textOf(name) === '') throw broken('a call of a tool without a name');
      const head = isFirst ? { id: textOf(one['id']) || `call_${choice}_${call}`, name: textOf(name) } : { id: null, name: null }; // prettier-ignore
      if (isFirst || textOf(piece) !== '') yield { type: 'tool_call', choice, call, ...head, arguments: textOf(piece) };
    }
    const reason = given['finish_reason'];
    if (typeof reason === 'string') reasons[choice] = Object.hasOwn(REASONS, reason) ? REASONS[reason]! : 'stop';
  }

  for await (const message of messages) {
    if (message === DONE) break;
    const chunk = parse(message);
    // Some say in the middle of a stream what went wrong; the words may have a prompt or a key in them.
    if (chunk['error'] !== undefined && chunk['error'] !== null) throw broken('an error in the middle of its answer');
    if (typeof chunk['usage'] === 'object' && chunk['usage'] !== null) usage = readUsage(fieldsOf(chunk['usage']));
    for (const given of listOf(chunk['choices'])) {
      for (const event of readChoice(fieldsOf(given))) {
        firstMs ??= now() - startMs;
        yield event;
      }
    }
  }
  const missing = reasons.indexOf(null);
  if (missing >= 0) throw broken(`an answer that ends in the middle: ${reasons.length} were asked for, number ${missing} has no end`); // prettier-ignore
  const totalMs = now() - startMs;
  yield* reasons.map((reason, choice): FinishedEvent => {
    // It counts all answers together; with the first they are counted once.
    const own = choice === 0 ? (usage ?? NO_USAGE) : NO_USAGE;
    const firstTokenMs = firstMs ?? totalMs;
    const generateMs = totalMs - firstTokenMs;
    const tokensPerSecond = own.completionTokens > 1 && generateMs > 0 ? ((own.completionTokens - 1) * 1000) / generateMs : null; // prettier-ignore
    const timings = { firstTokenMs, queuedMs: 0, promptMs: firstTokenMs, generateMs, promptTokensPerSecond: null, tokensPerSecond }; // prettier-ignore
    return { type: 'finished', choice, finishReason: reason!, usage: own, timings, seed, stopString: null };
  });
}

/** Where the engine does not count nobody else does. */
const NO_USAGE: Usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0, totalTokens: 0, reasoningTokens: 0 };

function parse(message: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(message);
  } catch {
    throw broken(`an event of ${message.length} characters that is not JSON`);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw broken('an event that is no object');
}

function readUsage(given: Fields): Usage {
  const promptTokens = countOf(given['prompt_tokens']);
  const completionTokens = countOf(given['completion_tokens']);
  return {
    promptTokens,
    cachedTokens: Math.min(promptTokens, countOf(fieldsOf(given['prompt_tokens_details'])['cached_tokens'])),
    completionTokens,
    totalTokens: promptTokens + completionTokens,
    reasoningTokens: Math.min(completionTokens, countOf(fieldsOf(given['completion_tokens_details'])['reasoning_tokens'])), // prettier-ignore
  };
}
