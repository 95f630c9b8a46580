import { createServer as createHttpServer, type Server as HttpServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { RuvLLMError } from '../../core/errors.ts';
import type { Server } from '../../server/app.ts';
import { textOf } from '../../server/text-response.ts';
import { createRefusals, type SocketTimeouts } from './socket-refusals.ts';

/** Where a server listens. */
export interface ListenOptions {
  /** Name or address. */
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly timeouts?: SocketTimeouts;
}

/** A server on its socket. */
export interface Listening {
  readonly url: string;
  readonly port: number;
  /** Admits nobody any more, lets what is in progress finish, ends the rest in time and unloads the models: `deadlineMs` in all. */
  close(deadlineMs: number): Promise<void>;
}

/** Headers of a request together; Node answers 431 itself. */
const MAX_HEADER_BYTES = 16 * 1024;
const TIMEOUTS: SocketTimeouts = { headersMs: 10_000, requestMs: 60_000, checkMs: 1000 };
/** For a client that still sends to read its answer. */
const LINGER_MS = 500;
/**
 * For a connection that nobody uses. Whoever sends on one as it is closed has a request that failed, and clients keep theirs as long as they
 * are told: with Node's own 5 s, one that is busy for a moment does so.
 */
const KEEP_ALIVE_MS = 75_000;
/** Open connections, idle ones included: each takes memory. */
const MAX_CONNECTIONS = 2048;

/** Of the time to shut down, what is kept to tell those who are cut off, and to unload. */
const MAX_GRACE_MS = 1000;

/** Serves on a socket. */
export async function listen(server: Server, { host, port, timeouts = TIMEOUTS }: ListenOptions): Promise<Listening> {
  const refusals = createRefusals(server, { maxHeaderBytes: MAX_HEADER_BYTES, timeouts });
  const answer = getRequestListener(
    async (request, { incoming, outgoing }) => {
      const response = await server.fetch(request);
      const text = textOf(response);
      if (text === null) return response;
      if (incoming.complete) sendText(outgoing as ServerResponse, response, text);
      else sendEarly(outgoing as ServerResponse, response, text);
      return RESPONSE_ALREADY_SENT;
    },
    { overrideGlobalObjects: false, errorHandler: () => refusals.malformed() },
  );
  let isClosing = false;
  const http = createHttpServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      requireHostHeader: false, // refused all the same, with a body that says why
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      connectionsCheckingInterval: timeouts.checkMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (incoming, outgoing) => {
      // Whoever asks again finds another server, or none, but does not hold this one.
      if (isClosing) outgoing.setHeader('connection', 'close');
      void answer(incoming, outgoing);
    },
  );
  refusals.attach(http);
  http.maxConnections = MAX_CONNECTIONS;
  await bind(http, host, port);
  const address = http.address() as AddressInfo;
  const name = host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${name}:${address.port}`,
    port: address.port,
    async close(deadlineMs) {
      // It goes on listening while requests finish: who comes now is told when to come back, and a balancer that it is over.
      isClosing = true;
      const graceMs = Math.min(MAX_GRACE_MS, deadlineMs / 2);
      await server.shutDown(deadlineMs - graceMs);
      const closed = new Promise<void>((resolve) => http.close(() => resolve()));
      http.closeIdleConnections();
      // What is still open has been told of its end; a client that does not read it would keep us for ever.
      const timer = setTimeout(() => http.closeAllConnections(), graceMs / 2);
      await closed;
      clearTimeout(timer);
    },
  };
}

/** Reading it back from the stream of the response takes longer than all that made it. */
function sendText(outgoing: ServerResponse, { status, headers }: Response, text: string): void {
  const length = Buffer.byteLength(text);
  outgoing.writeHead(status, { ...Object.fromEntries(headers), 'content-length': length });
  outgoing.end(text);
}

function bind(http: HttpServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    http.once('error', (error: NodeJS.ErrnoException) => {
      const code = error.code === 'EADDRINUSE' ? 'conflict' : 'io';
      reject(
        new RuvLLMError(code, `cannot listen on ${host} port ${port}: ${error.code ?? error.message}`, {
          cause: error,
        }),
      );
    });
    http.listen(port, host, () => resolve());
  });
}

/**
 * An answer before the end of its request. Closing at once would reset the connection, and the client lose the answer that it has not read
 * yet; reading on would take what is refused for its size.
 */
function sendEarly(outgoing: ServerResponse, { status, headers }: Response, text: string): void {
  const length = Buffer.byteLength(text);
  outgoing.writeHead(status, { ...Object.fromEntries(headers), 'content-length': length, connection: 'close' });
  outgoing.write(text);
  const timer = setTimeout(() => outgoing.end(), LINGER_MS);
  outgoing.once('close', () => clearTimeout(timer));
}
