import { createByteBuffer } from '../core/byte-buffer.ts';
import { RuvLLMError, serializeError } from '../core/errors.ts';
import { parseMediaType } from '../core/media-type.ts';
import { readSse } from '../core/sse-reader.ts';
import { idOf, isRecord, type JsonRpcId, type JsonRpcMessage } from './json-rpc.ts';
import { MCP_LIMITS } from './limits.ts';
import { parseMessage } from './parse-message.ts';
import type { McpTransport, TransportEvents } from './transport.ts';

/** The part of `fetch` that is used; never follows redirects. */
export type McpFetch = (
  url: string,
  init: {
    readonly method: 'POST' | 'DELETE';
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly redirect: 'manual';
    readonly signal: AbortSignal;
  },
) => Promise<Response>;

export interface McpHttpOptions {
  /** The name of the server in errors. */
  readonly server: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: McpFetch;
}

const MAX_REDIRECTS = 3;
/** Other redirects turn a POST into a GET. */
const REDIRECTS = new Set([307, 308]);
const MAX_SESSION_CHARS = 1024;
const CLOSE_MS = 2000;
const encoder = new TextEncoder();

/** An MCP server over streamable HTTP: each message is a POST, the reply is JSON or a stream of events. */
export function createMcpHttp({ server, url: firstUrl, headers, fetch }: McpHttpOptions): McpTransport {
  let events: TransportEvents | null = null;
  let url = firstUrl;
  let session: string | null = null;
  let version: string | null = null;

  const failure = (what: string, data: object = {}, cause?: unknown): RuvLLMError =>
    new RuvLLMError('tool_failed', `MCP server "${server}": ${what}`, { cause, data: { server, ...data } });

  const headersOf = (): Record<string, string> => ({
    ...headers,
    ...(session === null ? {} : { 'mcp-session-id': session }),
    ...(version === null ? {} : { 'mcp-protocol-version': version }),
  });

  /** Follows redirects within the origin only: another host would get the headers, and may be one that only we can reach. */
  async function post(body: string, signal: AbortSignal): Promise<Response> {
    for (let numRedirects = 0; ; numRedirects++) {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headersOf(), 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body,
        redirect: 'manual',
        signal,
      });
      const location = response.headers.get('location');
      if (response.status < 300 || response.status >= 400) return response;
      await response.body?.cancel();
      const next = location === null ? null : urlOf(location, url);
      const target = next === null ? 'an invalid address' : next.origin;
      if (next === null || next.origin !== new URL(url).origin)
        throw failure(`refused a redirect to ${target}; configure that address instead`);
      if (!REDIRECTS.has(response.status))
        throw failure(`it redirects with the status ${response.status}, which drops the message`);
      if (numRedirects >= MAX_REDIRECTS) throw failure(`more than ${MAX_REDIRECTS} redirects`);
      url = next.href;
    }
  }

  /** Reads the reply; a stream that stays open is left after the reply to this message. */
  async function read(response: Response, id: JsonRpcId): Promise<void> {
    const type = parseMediaType(response.headers.get('content-type'))?.type;
    if (response.body === null) return;
    const { maxMessageBytes, maxMessagesPerReply } = MCP_LIMITS;
    const chunks = response.body as unknown as AsyncIterable<Uint8Array>;
    if (type === 'text/event-stream') {
      const limits = { maxBytes: MCP_LIMITS.maxBytesPerSend, maxEventChars: MCP_LIMITS.maxMessageBytes };
      let numMessages = 0;
      for await (const data of readSse(chunks, limits)) {
        if (data === '') continue; // a keep-alive
        if (receive(encoder.encode(data)) === id) return;
        if (++numMessages > maxMessagesPerReply)
          throw failure(`it sent ${numMessages} messages before its reply`, { limit: maxMessagesPerReply });
      }
      return;
    }
    const buffer = createByteBuffer();
    for await (const chunk of chunks) {
      if (buffer.length + chunk.length > maxMessageBytes)
        throw failure(`it sent a message of more than ${maxMessageBytes} bytes`, { limit: maxMessageBytes });
      buffer.append(chunk);
    }
    const bytes = buffer.take();
    if (type !== 'application/json')
      throw failure(`its reply has the type ${JSON.stringify((type ?? 'none').slice(0, 80))} instead of JSON`);
    receive(bytes);
  }

  /** Passes a message on; returns the id of the request that it answers. */
  function receive(bytes: Uint8Array): JsonRpcId | null {
    const message = parseMessage(bytes);
    if (message.kind === 'no JSON') throw failure('its reply is not valid JSON');
    if (message.kind === 'excess') {
      events!.onExcess(message.id, message.what, message.limit);
      return message.id;
    }
    events!.onMessage(message.value, message.numBytes);
    return isRecord(message.value) && 'method' in message.value ? null : idOf(message.value);
  }

  return {
    async open(given) {
      events = given;
    },
    async send(message: JsonRpcMessage, signal) {
      let response: Response;
      try {
        response = await post(JSON.stringify(message), signal);
      } catch (error) {
        if (error instanceof RuvLLMError) throw error;
        throw failure(reasonOf(error), {}, error);
      }
      const { status } = response;
      if (!response.ok) {
        await response.body?.cancel();
        if (status === 404 && session !== null) {
          const ended = failure('its session ended', { isUndelivered: true });
          events!.onClose(ended);
          throw ended;
        }
        const hint = status === 401 || status === 403 ? '; set its credentials in headers' : '';
        throw failure(`it answered with the status ${status}${hint}`, { status });
      }
      const given = response.headers.get('mcp-session-id');
      if (given !== null && given.length <= MAX_SESSION_CHARS) session ??= given;
      const id = 'method' in message && 'id' in message ? message.id : undefined;
      if (id === undefined) {
        await response.body?.cancel(); // nothing is expected, and what comes could ask for more answers
        return;
      }
      try {
        await read(response, id);
      } catch (error) {
        throw error instanceof RuvLLMError && error.code === 'tool_failed'
          ? error
          : failure(reasonOf(error), {}, error);
      }
      // Without a reply in a complete response, none will come.
      throw failure('its response ended without a reply');
    },
    useVersion(chosen) {
      version = chosen;
    },
    async close() {
      if (session === null) return;
      const signal = AbortSignal.timeout(CLOSE_MS);
      const headersNow = headersOf();
      session = null;
      await fetch(url, { method: 'DELETE', headers: headersNow, redirect: 'manual', signal })
        .then((response) => response.body?.cancel())
        .catch(() => {}); // the server may be gone, and may not support it
    },
  };
}

function urlOf(location: string, base: string): URL | null {
  try {
    return new URL(location, base);
  } catch {
    return null;
  }
}

/** The innermost cause names the real error; `fetch` only says "fetch failed". */
function reasonOf(error: unknown): string {
  let reason = serializeError(error).message;
  for (let cause = error; cause instanceof Error; cause = cause.cause) reason = cause.message || reason;
  return reason;
}
