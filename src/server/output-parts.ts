import type { SampledToken } from '../runtime/lower-layers.ts';
import type { FinishedEvent, AnswerEvent } from '../runtime/requests/answer-events.ts';

/** A stretch of an answer that is one thing: a thought, text, or the call of a tool. */
export type OutputPart =
  | { readonly type: 'text'; text: string; logprobs: SampledToken[] | null }
  | { readonly type: 'reasoning'; text: string }
  | { readonly type: 'tool_call'; readonly id: string; readonly name: string; arguments: string };

/** What happens to the parts of an answer, for formats that open and close each. */
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
      /** The answer ended here because it was long enough, not because it was whole. */
      readonly isCut: boolean;
    }
  | { readonly type: 'finished'; readonly parts: readonly OutputPart[]; readonly finished: FinishedEvent };

/**
 * The events of a generation with one choice, cut into parts: one is open at a time. `hasText` gives an answer of nothing one
 * part, of empty text.
 */
export async function* toPartEvents(
  events: AsyncIterable<AnswerEvent>,
  { hasText }: { hasText: boolean },
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

  for await (const event of events) {
    if (event.type === 'text') {
      if (openCall !== 'text') yield* open({ type: 'text', text: '', logprobs: null });
      openCall = 'text';
      const part = parts.at(-1)! as Extract<OutputPart, { type: 'text' }>;
      part.text += event.text;
      if (event.logprobs !== null) (part.logprobs ??= []).push(...event.logprobs);
      yield { type: 'delta', index: parts.length - 1, part, text: event.text, logprobs: event.logprobs };
    } else if (event.type === 'reasoning') {
      if (openCall !== 'reasoning') yield* open({ type: 'reasoning', text: '' });
      openCall = 'reasoning';
      const part = parts.at(-1)! as Extract<OutputPart, { type: 'reasoning' }>;
      part.text += event.text;
      yield { type: 'delta', index: parts.length - 1, part, text: event.text, logprobs: null };
    } else if (event.type === 'tool_call') {
      if (openCall !== event.call) {
        yield* open({ type: 'tool_call', id: event.id ?? '', name: event.name ?? '', arguments: '' });
      }
      openCall = event.call;
      const part = parts.at(-1)! as Extract<OutputPart, { type: 'tool_call' }>;
      part.arguments += event.arguments;
      if (event.arguments === '') continue;
      yield { type: 'delta', index: parts.length - 1, part, text: event.arguments, logprobs: null };
    } else {
      if (hasText && parts.every(({ type }) => type === 'reasoning')) {
        yield* open({ type: 'text', text: '', logprobs: null });
        openCall = 'text';
      }
      yield* close(event.finishReason === 'length');
      yield { type: 'finished', parts, finished: event };
    }
  }
}

/** Reads a generation with one choice to its end. */
export async function collectParts(
  events: AsyncIterable<AnswerEvent>,
  options: { hasText: boolean },
): Promise<{ readonly parts: readonly OutputPart[]; readonly finished: FinishedEvent }> {
  let last: Extract<PartEvent, { type: 'finished' }> | null = null;
  for await (const event of toPartEvents(events, options)) if (event.type === 'finished') last = event;
  return { parts: last!.parts, finished: last!.finished };
}
