import type { LastChunk, AnswerChunk } from '../../../runtime/requests/answer-chunks.ts';
import { collectParts, type OutputPart } from '../../output-parts.ts';
import { toMessageUsage } from './usage.ts';

/** What every message says about itself. */
export interface MessageHead {
  readonly id: string;
  readonly model: string;
  /** False: what the model thinks is left out. */
  readonly hasThinking: boolean;
}

/** Why the answer ended, and the stop sequence if it was one. */
export function toStop({ finishReason, stopString }: LastChunk) {
  const sequence = { stop_reason: 'stop_sequence', stop_sequence: stopString };
  const plain = (reason: string) => ({ stop_reason: reason, stop_sequence: null });
  if (finishReason === 'length') return plain('max_tokens');
  if (finishReason === 'tool_calls') return plain('tool_use');
  return stopString === null ? plain('end_turn') : sequence;
}

/** The message around its content, as it is before anything is known of the answer. */
export function writeEnvelope({ id, model }: MessageHead, promptTokens: number) {
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
    usage: toMessageUsage({ promptTokens, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 }),
  };
}

/** Reads a generation to its end and writes the `message` object. */
export async function writeMessage(head: MessageHead, events: AsyncIterable<AnswerChunk>): Promise<object> {
  const { parts, finished } = await collectParts(shownEvents(head, events), { hasText: false });
  const { usage } = finished;
  return {
    ...writeEnvelope(head, usage.promptTokens),
    content: parts.map(writeBlock),
    ...toStop(finished),
    usage: toMessageUsage(usage),
  };
}

/** The events of a message without what it does not show. */
export async function* shownEvents({ hasThinking }: MessageHead, events: AsyncIterable<AnswerChunk>) {
  for await (const event of events) yield hasThinking ? event : { ...event, reasoning: '' };
}

/** Thoughts are sent back unchanged or not at all; clients that look for a signature do not send those without one. */
export const SIGNATURE = 'ruvllm';

function writeBlock(part: OutputPart): object {
  if (part.type === 'reasoning') return { type: 'thinking', thinking: part.text, signature: SIGNATURE };
  if (part.type === 'text') return { type: 'text', text: part.text, citations: null };
  return { ...startToolUse(part), input: readInput(part.arguments) };
}

/** A call as it begins in a stream: without its input. */
export function startToolUse({ id, name }: Extract<OutputPart, { type: 'tool_call' }>) {
  // Clients tell ids of calls by their beginning; what comes back is taken as it is, in the call and in its result.
  return {
    type: 'tool_use',
    id: `toolu_${id.replace(/^call_/, '')}`,
    name,
    input: {} as unknown,
    caller: { type: 'direct' },
  };
}

/** Arguments that broke off at `max_tokens` are no JSON; the reason says that they are not whole. */
function readInput(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return {};
  }
}
