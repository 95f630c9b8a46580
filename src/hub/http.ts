import { messageOf, RuvLLMError } from '../core/errors.ts';
import type { PullContext } from './pull-context.ts';

const MAX_REDIRECTS = 10;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const TRANSIENT = new Set([408, 425, 429, 500, 502, 503, 504]);

/** A reply whose body is read through `chunks`, with the idle timeout. */
export interface HttpReply {
  readonly status: number;
  readonly headers: Headers;
  readonly url: string;
  chunks(): AsyncGenerator<Uint8Array>;
  /** Closes the connection. */
  cancel(): Promise<void>;
}

function isLoopback(url: URL): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname);
}

/** The innermost cause names the real error (ECONNREFUSED, ENOTFOUND); fetch only says "fetch failed". */
function reasonOf(error: unknown): string {
  let reason = messageOf(error);
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    reason = (cause as { code?: string }).code ?? cause.message;
  }
  return reason;
}

/** Calls `work` with a signal that fires at the deadline or with the caller's; says which of the two it was. */
export async function withDeadline<T>(
  context: PullContext,
  connection: AbortController,
  limitMs: number,
  host: string,
  work: () => Promise<T>,
): Promise<T> {
  let isLate = false;
  const stop = context.platform.startTimer(limitMs, () => {
    isLate = true;
    connection.abort();
  });
  try {
    return await work();
  } catch (error) {
    if (context.signal?.aborted === true) throw new RuvLLMError('aborted', `download from ${host} was cancelled`);
    if (error instanceof RuvLLMError) throw error;
    const reason = isLate ? `no data for ${limitMs} ms` : reasonOf(error);
    throw new RuvLLMError('download_failed', `${host}: ${reason}`, { cause: error, isRetryable: true, data: { host } });
  } finally {
    stop();
  }
}

export function toReply(context: PullContext, connection: AbortController, response: Response, url: URL): HttpReply {
  return {
    status: response.status,
    headers: response.headers,
    url: url.href,
    async *chunks() {
      if (response.body === null) return;
      const reader = response.body.getReader();
      try {
        for (;;) {
          const limitMs = context.options.idleTimeoutMs;
          const { done, value } = await withDeadline(context, connection, limitMs, url.host, () => reader.read());
          if (done) return;
          yield value;
        }
      } finally {
        await reader.cancel().catch(() => undefined);
      }
    },
    async cancel() {
      await response.body?.cancel().catch(() => undefined);
      connection.abort();
    },
  };
}

function nextHop(from: URL, location: string | null): URL {
  const next = location !== null && URL.canParse(location, from) ? new URL(location, from) : null;
  if (next === null || !/^https?:$/.test(next.protocol) || next.username !== '' || next.password !== '') {
    throw new RuvLLMError('download_failed', `${from.host}: redirect without a usable address`);
  }
  if (from.protocol === 'https:' && next.protocol === 'http:' && !isLoopback(next)) {
    throw new RuvLLMError('download_failed', `${from.host}: refused a redirect from https to http://${next.host}`);
  }
  return next;
}

/** The one rule for addresses: an origin that the operator has named as it is, any other one only if all its addresses are public. */
export async function fetchAllowed(
  { platform, namedOrigins }: PullContext,
  url: URL,
  init: RequestInit,
): Promise<Response> {
  if (namedOrigins.includes(url.origin)) return await platform.fetch(url.href, init);
  try {
    return await platform.fetchPublic(url.href, init);
  } catch (error) {
    if (!(error instanceof RuvLLMError) || error.data['isPrivate'] !== true) throw error;
    const message = `${error.message}; to allow it, add ${url.origin} to RUVLLM_HUB_ORIGINS`;
    throw new RuvLLMError('download_failed', message, { data: error.data });
  }
}

/**
 * GET that follows redirects itself: the token goes only to the endpoint's origin, and never again after a redirect
 * elsewhere, and each address is checked. The caller handles statuses (see `toStatusError`).
 */
export async function httpGet(
  context: PullContext,
  address: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<HttpReply> {
  const home = new URL(context.options.endpoint).origin;
  let url = new URL(address);
  let isHome = true;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    isHome &&= url.origin === home;
    const sent: Record<string, string> = { 'accept-encoding': 'identity', 'user-agent': 'ruvllm', ...headers };
    if (isHome && context.token !== null) sent['authorization'] = `Bearer ${context.token}`;
    const connection = new AbortController();
    const signal = context.signal === null ? connection.signal : AbortSignal.any([connection.signal, context.signal]);
    const response = await withDeadline(context, connection, context.options.connectTimeoutMs, url.host, () =>
      fetchAllowed(context, url, { headers: sent, redirect: 'manual', signal }),
    );
    const reply = toReply(context, connection, response, url);
    if (!REDIRECTS.has(response.status)) return reply;
    await reply.cancel();
    url = nextHop(url, response.headers.get('location'));
  }
  throw new RuvLLMError('download_failed', `${new URL(address).host}: more than ${MAX_REDIRECTS} redirects`);
}

/** The error for a failure status; closes the connection. */
export async function toStatusError(reply: HttpReply, what: string): Promise<RuvLLMError> {
  const { host } = new URL(reply.url);
  await reply.cancel();
  const data = { status: reply.status, host };
  if (reply.status === 404) return new RuvLLMError('not_found', `${what}: not found on ${host} (404)`, { data });
  if (reply.status === 401 || reply.status === 403) {
    const hint = 'it does not exist, or requires a token (HF_TOKEN) with access';
    return new RuvLLMError('download_failed', `${what}: ${host} answered ${reply.status}: ${hint}`, { data });
  }
  const after = Number(reply.headers.get('retry-after') ?? NaN);
  const retryAfterMs = Number.isFinite(after) && after >= 0 ? after * 1000 : -1;
  return new RuvLLMError('download_failed', `${what}: ${host} answered ${reply.status}`, {
    data: { ...data, retryAfterMs },
    isRetryable: TRANSIENT.has(reply.status),
  });
}

/** Reads a complete JSON reply of at most `maxBytes`. */
export async function readJson(reply: HttpReply, maxBytes: number, what: string): Promise<unknown> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  let numBytes = 0;
  for await (const chunk of reply.chunks()) {
    numBytes += chunk.byteLength;
    if (numBytes > maxBytes)
      throw new RuvLLMError('download_failed', `${what}: the response exceeds ${maxBytes} bytes`);
    text += decode(decoder, chunk, what);
  }
  try {
    return JSON.parse(text + decoder.decode());
  } catch (error) {
    throw new RuvLLMError('download_failed', `${what}: the response of ${numBytes} bytes is not JSON`, {
      cause: error,
    });
  }
}

function decode(decoder: TextDecoder, chunk: Uint8Array, what: string): string {
  try {
    return decoder.decode(chunk, { stream: true });
  } catch (error) {
    throw new RuvLLMError('download_failed', `${what}: the response is not UTF-8`, { cause: error });
  }
}
