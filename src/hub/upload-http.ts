import { messageOf, RuvLLMError } from '../core/errors.ts';
import { fetchAllowed, readJson, toReply, withDeadline, type HttpReply } from './http.ts';
import type { PullContext } from './pull-context.ts';

/** A request with a body. */
export interface UploadRequest {
  readonly method: 'POST' | 'PUT';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** Named in errors. */
  readonly what: string;
}

const MAX_REPLY_BYTES = 8 << 20;
/** Errors of a hub are shown, but not at any length. */
const MAX_REASON = 200;
const TRANSIENT = new Set([408, 425, 429, 500, 502, 503, 504]);

/**
 * Sends bytes to a hub or to a store that the hub names. The token goes to the hub's origin only, redirects are not followed, and a hub
 * cannot send bytes to private addresses that the operator has not named.
 */
export async function sendUpload(context: PullContext, request: UploadRequest): Promise<HttpReply> {
  const { options, token } = context;
  const home = new URL(options.endpoint);
  const url = URL.canParse(request.url) ? new URL(request.url) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || (home.protocol === 'https:' && url.protocol === 'http:')) {
    throw new RuvLLMError('upload_failed', `${request.what}: ${home.host} named an address that is not usable`);
  }
  const isHome = url.origin === home.origin;
  const headers: Record<string, string> = { 'user-agent': 'ruvllm', ...request.headers };
  if (isHome && token !== null) headers['authorization'] = `Bearer ${token}`;
  const connection = new AbortController();
  const signal = context.signal === null ? connection.signal : AbortSignal.any([connection.signal, context.signal]);
  const { body, method } = request;
  const isStream = typeof body !== 'string' && !(body instanceof Uint8Array);
  const init = { method, headers, body, signal, redirect: 'manual', ...(isStream ? { duplex: 'half' } : {}) };
  try {
    const response = await withDeadline(context, connection, UPLOAD_TIMEOUT_MS, url.host, () =>
      fetchAllowed(context, url, init as RequestInit),
    );
    return toReply(context, connection, response, url);
  } catch (error) {
    if (!(error instanceof RuvLLMError) || error.code !== 'download_failed') throw error;
    // Its cause could quote the request, and the request has the token.
    throw new RuvLLMError('upload_failed', `${request.what}: ${error.message}`, { isRetryable: error.isRetryable });
  }
}

/** A part may take long over a slow line. */
const UPLOAD_TIMEOUT_MS = 600_000;

/** Sends and reads a JSON reply; other statuses than 2xx throw. */
export async function sendForJson(context: PullContext, request: UploadRequest): Promise<unknown> {
  const reply = await sendUpload(context, request);
  if (reply.status < 200 || reply.status > 299) throw await toUploadError(reply, request.what);
  try {
    return await readJson(reply, MAX_REPLY_BYTES, request.what);
  } catch (error) {
    throw new RuvLLMError('upload_failed', messageOf(error));
  }
}

const HINTS: Readonly<Record<number, string>> = {
  401: 'the token (HF_TOKEN) is missing, wrong or expired',
  403: 'the token has no write access to this repository',
  404: 'the repository does not exist; --create creates it',
  413: 'the file is larger than the hub accepts',
};

/** The error for a failure status, with what the hub says about it. */
export async function toUploadError(reply: HttpReply, what: string): Promise<RuvLLMError> {
  const { host } = new URL(reply.url);
  const hint = HINTS[reply.status] ?? (await readReason(reply));
  await reply.cancel();
  const after = Number(reply.headers.get('retry-after') ?? NaN);
  const retryAfterMs = Number.isFinite(after) && after >= 0 ? after * 1000 : -1;
  const message = `${what}: ${host} answered ${reply.status}${hint === '' ? '' : `: ${hint}`}`;
  const isRetryable = TRANSIENT.has(reply.status);
  return new RuvLLMError('upload_failed', message, { data: { status: reply.status, host, retryAfterMs }, isRetryable });
}

async function readReason(reply: HttpReply): Promise<string> {
  try {
    const body = (await readJson(reply, 64 << 10, 'error')) as { error?: unknown; message?: unknown } | null;
    const reason = body?.error ?? body?.message;
    return typeof reason === 'string' ? reason.replaceAll(/\p{Cc}/gu, ' ').slice(0, MAX_REASON) : '';
  } catch {
    return '';
  }
}
