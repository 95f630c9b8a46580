import type { LastChunk, AnswerChunk } from '../../../runtime/requests/answer-chunks.ts';
import { collectParts, type OutputPart } from '../../output-parts.ts';
import { toMessageUsage } from './usage.ts';

/** Fields of every message. */
export interface MessageHead {
  readonly id: string;
  readonly model: string;
  /** False: reasoning is left out. */
  readonly hasThinking: boolean;
  /** Whether the usage says what was written to the cache. */
  readonly hasCacheControl: boolean;
  /** Further fields, not in Anthropic's API: `memory` where texts were recalled. */
  readonly extensions: object;
}

/** The stop reason, and the stop sequence if there was one. */
export function toStop({ finishReason, stopString }: LastChunk) {
  const sequence = { stop_reason: 'stop_sequence', stop_sequence: stopString };
  const plain = (reason: string) => ({ stop_reason: reason, stop_sequence: null });
  if (finishReason === 'length') return plain('max_tokens');
  if (finishReason === 'tool_calls') return plain('tool_use');
  return stopString === null ? plain('end_turn') : sequence;
}

/** A message without content. */
export function writeEnvelope({ id, model, extensions }: MessageHead, promptTokens: number) {
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: [] as readonly object[],
    stop_reason: null as string | null,
    stop_sequence: null as string | null,
    stop_details: null,
    container: null,
    diagnostics: null,
    ...extensions,
    usage: toMessageUsage({ promptTokens, cachedTokens: 0, completionTokens: 0 }, false),
  };
}

/** Reads a generation to its end and writes the `message` object. */
export async function writeMessage(head: MessageHead, events: AsyncIterable<AnswerChunk>): Promise<object> {
  const { parts, finished } = await collectParts(visibleEvents(head, events), { hasText: false });
  const { usage } = finished;
  return {
    ...writeEnvelope(head, usage.promptTokens),
    content: parts.map(writeBlock),
    ...toStop(finished),
    usage: toMessageUsage(usage, head.hasCacheControl),
  };
}

/** The events of a message, without reasoning if that is hidden. */
export async function* visibleEvents({ hasThinking }: MessageHead, events: AsyncIterable<AnswerChunk>) {
  for await (const event of events) yield hasThinking ? event : { ...event, reasoning: '' };
}

/** Clients send reasoning back only if it has a signature. */
export const SIGNATURE = 'ruvllm';

function writeBlock(part: OutputPart): object {
  if (part.type === 'reasoning') return { type: 'thinking', thinking: part.text, signature: SIGNATURE };
  if (part.type === 'text') return { type: 'text', text: part.text, citations: null };
  return { ...startToolUse(part), input: readInput(part.arguments) };
}

/** A call without its input, as a stream starts it. */
export function startToolUse({ id, name }: Extract<OutputPart, { type: 'tool_call' }>) {
  // Clients recognize ids of calls by this prefix. It is not removed again: call and result both have it.
  return {
    type: 'tool_use',
    id: `toolu_${id.replace(/^call_/, '')}`,
    name,
    input: {} as unknown,
    caller: { type: 'direct' },
  };
}

/** Arguments truncated at `max_tokens` are not JSON; the stop reason says so. */
function readInput(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return {};
  }
}
