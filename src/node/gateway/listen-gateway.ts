import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { RuvLLMError } from '../../core/errors.ts';
import { describeFailure, refusal } from '../../server/errors.ts';
import { openaiErrors } from '../../server/wire/openai/error-body.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { GatewayBody, GatewayResponse } from '../../gateway/types.ts';
import {
  bind,
  KEEP_ALIVE_MS,
  type ListenOptions,
  type Listening,
  MAX_HEADER_BYTES,
  TIMEOUTS,
  urlOf,
} from '../server/serve.ts';
import { createRefusals } from '../server/socket-refusals.ts';

/** Clients of all nodes together. */
const MAX_CONNECTIONS = 8192;

/** Serves a gateway on a socket. */
export async function listenGateway(
  gateway: Gateway,
  { host, port, timeouts = TIMEOUTS }: ListenOptions,
): Promise<Listening> {
  let isClosing = false;
  const http = createHttpServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      connectionsCheckingInterval: timeouts.checkMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (incoming, outgoing) => {
      if (isClosing) outgoing.setHeader('connection', 'close');
      void answer(gateway, incoming, outgoing);
    },
  );
  createRefusals(gateway, { maxHeaderBytes: MAX_HEADER_BYTES, timeouts }).attach(http);
  http.maxConnections = MAX_CONNECTIONS;
  const boundPort = await bind(http, host, port);
  return {
    url: urlOf(host, boundPort),
    port: boundPort,
    async close(deadlineMs) {
      isClosing = true;
      await gateway.shutDown(deadlineMs);
      const closed = new Promise<void>((resolve) => http.close(() => resolve()));
      http.closeIdleConnections();
      const timer = setTimeout(() => http.closeAllConnections(), 500);
      await closed;
      clearTimeout(timer);
    },
  };
}

async function answer(gateway: Gateway, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const left = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) left.abort();
  });
  try {
    const body = await readBody(incoming, gateway.limits.maxBodyBytes);
    const response =
      body === null
        ? tooLarge(gateway.limits.maxBodyBytes)
        : await gateway.handle({
            method: incoming.method!,
            target: incoming.url!,
            headers: headersOf(incoming),
            body,
            signal: left.signal,
          });
    const headers = body === null ? { ...response.headers, connection: 'close' } : response.headers;
    await write(
      outgoing,
      incoming.method === 'HEAD' ? { ...response, body: new Uint8Array() } : { ...response, headers },
    );
  } catch {
    outgoing.destroy(); // the client left, or an answer that is no stream broke off
  }
}

function headersOf({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(headersDistinct))
    for (const value of values ?? []) headers.append(name, value);
  return headers;
}

/** Null: it is larger than the limit. */
async function readBody(incoming: IncomingMessage, maxBytes: number): Promise<Uint8Array | null> {
  if (Number(incoming.headers['content-length'] ?? 0) > maxBytes) return null;
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) return null;
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

function tooLarge(maxBytes: number): GatewayResponse {
  const failure = describeFailure(refusal(413, 'body_too_large', `the body has more than ${maxBytes} bytes`));
  const text = JSON.stringify(openaiErrors.body(failure, ''));
  return { status: 413, headers: { 'content-type': 'application/json' }, body: new TextEncoder().encode(text) };
}

async function write(outgoing: ServerResponse, { status, headers, body }: GatewayResponse): Promise<void> {
  if (body instanceof Uint8Array) {
    outgoing.writeHead(status, { ...headers, 'content-length': body.length });
    outgoing.end(body);
    return;
  }
  outgoing.writeHead(status, headers);
  await writeAll(outgoing, body);
  outgoing.end();
}

async function writeAll(outgoing: ServerResponse, body: Exclude<GatewayBody, Uint8Array>): Promise<void> {
  for await (const chunk of body) {
    if (outgoing.destroyed) throw new RuvLLMError('aborted', 'the client left');
    if (!outgoing.write(chunk)) await drained(outgoing);
  }
}

/** A client that leaves never drains. */
function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      outgoing.off('drain', done).off('close', done);
      resolve();
    };
    outgoing.on('drain', done).on('close', done);
  });
}
