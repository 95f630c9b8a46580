import type { SampledToken } from '../runtime/lower-layers.ts';
import { type AnswerChunk, hasText, type LastChunk } from '../runtime/requests/answer-chunks.ts';

/** A part of an answer: text, reasoning or a tool call. */
export type OutputPart =
  | { readonly type: 'text'; text: string; logprobs: SampledToken[] | null }
  | { readonly type: 'reasoning'; text: string }
  | { readonly type: 'tool_call'; readonly id: string; readonly name: string; arguments: string };

/** Events of parts, for formats that open and close each. */
export type PartEvent =
  | { readonly type: 'open'; readonly index: number; readonly part: OutputPart }
  | {
      readonly type: 'delta';
      readonly index: number;
      readonly part: OutputPart;
      readonly text: string;
      readonly logprobs: readonly SampledToken[] | null;
    }
  | {
      readonly type: 'close';
      readonly index: number;
      readonly part: OutputPart;
      /** The answer was truncated here. */
      readonly isCut: boolean;
    }
  | { readonly type: 'finished'; readonly parts: readonly OutputPart[]; readonly finished: LastChunk };

/**
 * Splits a generation with one choice into parts, one open at a time. With `hasText`, an answer without text gets an empty
 * text part.
 */
export async function* toPartEvents(
  events: AsyncIterable<AnswerChunk>,
  { hasText: needsText }: { hasText: boolean },
): AsyncGenerator<PartEvent, void, undefined> {
  const parts: OutputPart[] = [];
  let openCall: number | 'text' | 'reasoning' | null = null;

  function* open(part: OutputPart): Generator<PartEvent> {
    yield* close(false);
    parts.push(part);
    yield { type: 'open', index: parts.length - 1, part };
  }
  function* close(isCut: boolean): Generator<PartEvent> {
    if (openCall !== null) yield { type: 'close', index: parts.length - 1, part: parts.at(-1)!, isCut };
    openCall = null;
  }

  /** Appends to the open part, or opens a new one. */
  function* add(key: typeof openCall, part: OutputPart, text: string, logprobs: readonly SampledToken[] | null) {
    if (openCall !== key) yield* open(part);
    openCall = key;
    const last = parts.at(-1)!;
    if (last.type === 'tool_call') last.arguments += text;
    else last.text += text;
    if (last.type === 'text' && logprobs !== null) (last.logprobs ??= []).push(...logprobs);
    if (last.type === 'tool_call' && text === '') return;
    yield { type: 'delta' as const, index: parts.length - 1, part: last, text, logprobs };
  }

  for await (const chunk of events) {
    const { text, reasoning, toolCalls, textLogprobs } = chunk;
    if (reasoning !== '') yield* add('reasoning', { type: 'reasoning', text: '' }, reasoning, null);
    if (hasText(chunk)) yield* add('text', { type: 'text', text: '', logprobs: null }, text, textLogprobs);
    for (const { index, id, name, arguments: more } of toolCalls) {
      yield* add(index, { type: 'tool_call', id, name, arguments: '' }, more, null);
    }
    if (chunk.finishReason === null) continue;
    if (needsText && parts.every(({ type }) => type === 'reasoning')) {
      yield* open({ type: 'text', text: '', logprobs: null });
      openCall = 'text';
    }
    yield* close(chunk.finishReason === 'length');
    yield { type: 'finished', parts, finished: chunk };
  }
}

/** Reads a generation with one choice to its end. */
export async function collectParts(
  events: AsyncIterable<AnswerChunk>,
  options: { hasText: boolean },
): Promise<{ readonly parts: readonly OutputPart[]; readonly finished: LastChunk }> {
  let last: Extract<PartEvent, { type: 'finished' }> | null = null;
  for await (const event of toPartEvents(events, options)) if (event.type === 'finished') last = event;
  return { parts: last!.parts, finished: last!.finished };
}
