import type { Client } from './client.ts';
import { ApiError } from './errors.ts';
import { messages } from '../messages/index.ts';
import { readSse } from './sse.ts';
import type { ChatChunk, ChatRequest, RecalledMemory, Usage } from './types.ts';

/** Response headers of an answer, available before its first token. */
export interface AnswerOrigin {
  readonly requestId: string;
  /** The router's decision; null: the request named the model. */
  readonly route: { readonly candidate: string; readonly reason: string } | null;
  /** Memory records in the prompt. */
  readonly sources: readonly AnswerSource[];
  /** Whether records were found that did not fit the prompt, and none that did. Default false. */
  readonly hasNothingFitted?: boolean;
}

export interface AnswerSource {
  readonly number: number;
  readonly kind: string;
  readonly id: string;
  /** The part of a document that it is. */
  readonly part?: {
    readonly name: string;
    readonly headings: readonly string[];
    readonly startLine: number | null;
    readonly endLine: number | null;
    readonly startPage: number | null;
    readonly endPage: number | null;
  };
}

export type AnswerEvent =
  | { readonly type: 'origin'; readonly origin: AnswerOrigin }
  | { readonly type: 'recalled'; readonly sources: readonly AnswerSource[]; readonly hasNothingFitted: boolean }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** Part of a tool call: the first part of each index has an id and a name. */
  | { readonly type: 'call'; readonly index: number; readonly id: string; readonly name: string; readonly text: string }
  | { readonly type: 'finished'; readonly reason: string; readonly model: string }
  | { readonly type: 'usage'; readonly usage: Usage };

/** `POST /v1/chat/completions` as a stream of events. */
export async function* streamChat(
  client: Client,
  request: ChatRequest,
  signal: AbortSignal,
): AsyncGenerator<AnswerEvent, void, undefined> {
  const body = { ...request, stream: true, stream_options: { include_usage: true } };
  const response = await client.open('POST', '/v1/chat/completions', body, { signal });
  yield { type: 'origin', origin: readOrigin(response.headers) };
  for await (const { data } of readSse(response.body!)) {
    if (data === '[DONE]') return;
    yield* readChunk(JSON.parse(data) as ChatChunk | { error: { message: string; code: string | null } });
  }
  throw new ApiError(messages.api.incomplete, { status: 0, code: 'unreachable' });
}

function* readChunk(chunk: ChatChunk | { error: { message: string; code: string | null } }): Generator<AnswerEvent> {
  if ('error' in chunk) throw new ApiError(chunk.error.message, { status: 0, code: chunk.error.code ?? 'unknown' });
  if (chunk.memory !== undefined) {
    const { sources, outcome } = chunk.memory;
    yield { type: 'recalled', sources: sources.map(readSource), hasNothingFitted: outcome === 'nothing_fitted' };
  }
  for (const { delta, finish_reason: reason } of chunk.choices) {
    if (delta.reasoning_content) yield { type: 'reasoning', text: delta.reasoning_content };
    if (delta.content) yield { type: 'text', text: delta.content };
    for (const {
      index,
      id = '',
      function: { name = '', arguments: text = '' },
    } of delta.tool_calls ?? []) {
      yield { type: 'call', index, id, name, text };
    }
    if (reason !== null) yield { type: 'finished', reason, model: chunk.model };
  }
  if (chunk.usage != null) yield { type: 'usage', usage: chunk.usage };
}

function readSource({ number, kind, id, name, ...place }: RecalledMemory['sources'][number]): AnswerSource {
  if (name === undefined) return { number, kind, id };
  const part = {
    name,
    headings: place.headings ?? [],
    startLine: place.start_line ?? null,
    endLine: place.end_line ?? null,
    startPage: place.start_page ?? null,
    endPage: place.end_page ?? null,
  };
  return { number, kind, id, part };
}

/** Reads the headers of an answer: `x-memory-sources: 1=document:ID 2=…`. */
export function readOrigin(headers: Headers): AnswerOrigin {
  const candidate = headers.get('x-route');
  const sources = (headers.get('x-memory-sources') ?? '').split(' ').flatMap((entry) => {
    const match = /^(\d+)=([^:]+):(.+)$/.exec(entry);
    return match === null ? [] : [{ number: Number(match[1]), kind: match[2]!, id: match[3]! }];
  });
  return {
    requestId: headers.get('x-request-id') ?? '',
    route: candidate === null ? null : { candidate, reason: headers.get('x-route-reason') ?? '' },
    sources,
  };
}
