import type { Client } from './client.ts';
import { ApiError } from './errors.ts';
import { readSse } from './sse.ts';
import type { ChatChunk, ChatRequest, Usage } from './types.ts';

/** Response headers of an answer, available before its first token. */
export interface AnswerOrigin {
  readonly requestId: string;
  /** The router's decision; null: the request named the model. */
  readonly route: { readonly candidate: string; readonly reason: string } | null;
  /** Memory records in the prompt. */
  readonly sources: readonly { readonly number: number; readonly kind: string; readonly id: string }[];
}

export type AnswerEvent =
  | { readonly type: 'origin'; readonly origin: AnswerOrigin }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
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
  throw new ApiError('The stream ended before the answer was complete.', { status: 0, code: 'unreachable' });
}

function* readChunk(chunk: ChatChunk | { error: { message: string; code: string | null } }): Generator<AnswerEvent> {
  if ('error' in chunk) throw new ApiError(chunk.error.message, { status: 0, code: chunk.error.code ?? 'unknown' });
  for (const { delta, finish_reason: reason } of chunk.choices) {
    if (delta.reasoning_content) yield { type: 'reasoning', text: delta.reasoning_content };
    if (delta.content) yield { type: 'text', text: delta.content };
    if (reason !== null) yield { type: 'finished', reason, model: chunk.model };
  }
  if (chunk.usage != null) yield { type: 'usage', usage: chunk.usage };
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
