import { trimEndOf } from '../../../core/trim.ts';
import { type ErrorCode, RuvLLMError } from '../../../core/errors.ts';
import type { RemoteRoute } from '../../routing/route-config.ts';
import type { Clock } from '../../../core/clock.ts';
import type { TraceContext } from '../caller.ts';
import type { AnswerChunk } from '../answer-chunks.ts';
import type { GenerationRequest } from '../generation-request.ts';
import { linkAbort } from '../../../core/abort.ts';
import { toRemoteBody } from './remote-body.ts';
import { readRemoteEvents } from './remote-events.ts';
import { readSse } from '../../../core/sse-reader.ts';

export interface RemoteCallContext {
  readonly key: string | null;
  readonly signal: AbortSignal;
  /** Default: there is none. */
  readonly trace?: TraceContext | null;
  readonly clock: Clock;
  /** Default: the process's. */
  readonly fetch?: typeof fetch;
}

/** More than the longest answer of any model we know of, with all its framing. */
const LIMITS = { maxBytes: 64 << 20, maxEventChars: 4 << 20 };

/** Error for each HTTP status of the remote engine. */
const CODES: Readonly<Record<number, { readonly code: ErrorCode; readonly says: string }>> = {
  400: { code: 'invalid_option', says: 'does not take this request' },
  401: { code: 'remote_failed', says: 'does not take the configured key' },
  403: { code: 'remote_failed', says: 'does not allow this with the configured key' },
  404: { code: 'remote_failed', says: 'does not know the configured model or path' },
  413: { code: 'invalid_option', says: 'takes no request of this size' },
  422: { code: 'invalid_option', says: 'does not take this request' },
  429: { code: 'overloaded', says: 'is overloaded, or its quota is used up' },
  503: { code: 'overloaded', says: 'is overloaded' },
};

/** Failures of a kept connection that the engine closed while it was idle. */
const CLOSED: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/**
 * Sends a request to a remote engine; once more if the connection breaks before an answer, because it may be an old one. The body of a failed response is not read: it may quote the key or the prompt,
 * and goes to logs. A redirect is a failure, too: it would send both to a host that is not configured.
 */
export async function* runRemote(
  route: RemoteRoute,
  request: GenerationRequest,
  { key, signal, trace = null, clock, fetch: ask = fetch }: RemoteCallContext,
): AsyncGenerator<AnswerChunk, void, undefined> {
  const { id, url, timeoutMs } = route;
  const own = linkAbort(signal);
  const startMs = clock.now();
  let isLate = false;
  let cancel = (): void => {};
  const wind = (): void => {
    cancel();
    cancel = clock.setTimer(timeoutMs, () => {
      isLate = true;
      own.abort();
    });
  };
  wind();
  try {
    const send = (): Promise<Response> =>
      ask(`${trimEndOf(url, '/')}/chat/completions`, {
        method: 'POST',
        redirect: 'manual',
        headers: {
          'content-type': 'application/json',
          accept: 'text/event-stream',
          ...trace?.headers,
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify(toRemoteBody(request, route.model)),
        signal: own.signal,
      });
    const response = await send().catch((error: unknown) => {
      if (!CLOSED.has(codeOf(error)) || own.signal.aborted) throw error;
      return send();
    });
    const body = checkResponse(id, response);
    const events = readRemoteEvents(readSse(restarting(body, wind), LIMITS), {
      numChoices: request.numChoices,
      seed: typeof request.options.seed === 'number' ? request.options.seed : 0,
      now: clock.now,
      startMs,
    });
    for await (const event of events) {
      cancel(); // a client that reads slowly is no silence of theirs
      yield event;
      wind();
    }
  } catch (error) {
    throw toFailure(error, { id, isLate, timeoutMs, signal });
  } finally {
    cancel();
    own.unlink();
    own.abort(); // closes the connection if the reader leaves early
  }
}

function checkResponse(id: string, response: Response): ReadableStream<Uint8Array> {
  const { status, body } = response;
  if (status === 200 && body !== null && /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')) return body; // prettier-ignore
  body?.cancel().catch(() => {});
  if (status === 200) throw new RuvLLMError('remote_failed', `"${id}" answered with something that is no stream of events`, { data: { candidate: id } }); // prettier-ignore
  const known = CODES[status] ?? { code: 'remote_failed' as const, says: status >= 300 && status < 400 ? 'answered with a redirect, which is not followed' : 'failed' }; // prettier-ignore
  throw new RuvLLMError(known.code, `"${id}" ${known.says} (status ${status})`, {
    data: { candidate: id, status },
    isRetryable: known.code === 'overloaded' || status >= 500,
  });
}

/** Any byte is a sign of life, comments included. */
async function* restarting(body: ReadableStream<Uint8Array>, wind: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    wind();
    yield chunk;
  }
}

interface FailureContext {
  readonly id: string;
  readonly isLate: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

function toFailure(error: unknown, { id, isLate, timeoutMs, signal }: FailureContext): RuvLLMError {
  const data = { candidate: id };
  if (signal.aborted) return new RuvLLMError('aborted', 'aborted by the caller');
  if (isLate) return new RuvLLMError('deadline_exceeded', `"${id}" was silent for ${timeoutMs} ms`, { data: { ...data, timeoutMs }, isRetryable: true }); // prettier-ignore
  if (error instanceof RuvLLMError) {
    if (error.data['candidate'] === id) return error;
    return new RuvLLMError(error.code, `"${id}": ${error.message}`, { data: { ...error.data, ...data } });
  }
  // Only the code: messages of the network may have addresses and headers in them.
  const cause = codeOf(error);
  const reason = typeof cause === 'string' && /^[A-Z_]{1,60}$/.test(cause) ? cause : 'the connection broke';
  return new RuvLLMError('remote_failed', `"${id}" cannot be reached: ${reason}`, { data, isRetryable: true });
}

const codeOf = (error: unknown): unknown => (error as { cause?: { code?: unknown } }).cause?.code;
