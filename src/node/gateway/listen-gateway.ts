import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { RuvLLMError } from '../../core/errors.ts';
import { refusal } from '../../server/errors.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { GatewayBody, GatewayResponse } from '../../gateway/types.ts';
import { closeListening } from '../server/close-listening.ts';
import {
  bind,
  KEEP_ALIVE_MS,
  type ListenOptions,
  type Listening,
  MAX_HEADER_BYTES,
  sendEarly,
  TIMEOUTS,
  urlOf,
} from '../server/serve.ts';
import { createRefusals } from '../server/socket-refusals.ts';

/** Clients of all nodes together. */
const MAX_CONNECTIONS = 8192;
const NO_BODY = new Uint8Array();

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
  // Clients that ask first are told to send their body when it is read.
  http.on('checkContinue', (incoming, outgoing) => http.emit('request', incoming, outgoing));
  createRefusals(gateway, { maxHeaderBytes: MAX_HEADER_BYTES, timeouts }).attach(http);
  http.maxConnections = MAX_CONNECTIONS;
  const boundPort = await bind(http, host, port);
  return {
    url: urlOf(host, boundPort),
    port: boundPort,
    async close(deadlineMs) {
      isClosing = true;
      await closeListening(http, gateway, deadlineMs);
    },
  };
}

async function answer(gateway: Gateway, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const left = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) left.abort();
  });
  try {
    const response = await gateway.handle({
      method: incoming.method!,
      target: incoming.url!,
      headers: headersOf(incoming),
      readBody: (onBytes) => readBody(incoming, outgoing, gateway.limits.maxBodyBytes, onBytes),
      signal: left.signal,
    });
    if (incoming.method === 'HEAD') await write(outgoing, { ...response, body: NO_BODY });
    else if (incoming.complete || !(response.body instanceof Uint8Array)) await write(outgoing, response);
    else sendEarly(outgoing, { ...response, body: response.body });
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

async function readBody(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  maxBytes: number,
  onBytes: (numBytes: number) => void,
): Promise<Uint8Array> {
  const { 'content-length': length, 'transfer-encoding': encoding, expect } = incoming.headers;
  if (length === undefined && encoding === undefined) return NO_BODY;
  const tooLarge = (): Error => refusal(413, 'body_too_large', `the body has more than ${maxBytes} bytes`);
  if (Number(length ?? 0) > maxBytes) throw tooLarge();
  if (expect !== undefined) outgoing.writeContinue();
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  try {
    // By default, leaving the loop would destroy the connection before the client has read why.
    const reader = incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    for await (const chunk of reader) {
      sizeBytes += chunk.length;
      if (sizeBytes > maxBytes) throw tooLarge();
      onBytes(chunk.length);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof RuvLLMError) throw error;
    throw new RuvLLMError('aborted', `the client left after ${sizeBytes} bytes of the body`, { cause: error });
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
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
