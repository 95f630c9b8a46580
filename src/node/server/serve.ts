import { createServer as createHttpServer, type Server as HttpServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { RuvLLMError } from '../../core/errors.ts';
import type { Server } from '../../server/app.ts';
import { ODD_PATH, readPath } from '../../server/request-path.ts';
import { textOf } from '../../server/text-response.ts';
import { closeListening } from './close-listening.ts';
import { createRefusals, NO_PATH, type SocketTimeouts } from './socket-refusals.ts';

/** Where a server listens. */
export interface ListenOptions {
  /** Name or address. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly timeouts?: SocketTimeouts;
}

/** A listening server. */
export interface Listening {
  readonly url: string;
  readonly port: number;
  /** Takes the requests that are waiting, rejects new ones, aborts the rest and unloads the models, within `deadlineMs`. */
  close(deadlineMs: number): Promise<void>;
}

/** Maximum size of a request's headers. */
export const MAX_HEADER_BYTES = 16 * 1024;
export const TIMEOUTS: SocketTimeouts = { headersMs: 10_000, requestMs: 60_000, checkMs: 1000 };
/** Time for a client that is still sending to read its response. */
const LINGER_MS = 500;
/**
 * Idle time of a connection. A request sent while the connection closes fails; with Node's default of 5 s that happens to clients that
 * pause briefly.
 */
export const KEEP_ALIVE_MS = 75_000;
/** Maximum connections, including idle ones: each takes memory. */
const MAX_CONNECTIONS = 2048;

/** Serves on a socket. */
export async function listen(server: Server, { host, port, timeouts = TIMEOUTS }: ListenOptions): Promise<Listening> {
  const refusals = createRefusals(server, { maxHeaderBytes: MAX_HEADER_BYTES, timeouts });
  const answer = getRequestListener(
    async (request, { incoming, outgoing }) => {
      if (readPath(incoming.url!) === null) return refusals.malformed(ODD_PATH);
      const response = await server.fetch(request);
      const text = textOf(response);
      if (text === null) return response;
      if (incoming.complete) sendText(outgoing as ServerResponse, response, text);
      else {
        const headers = Object.fromEntries(response.headers);
        sendEarly(outgoing as ServerResponse, { status: response.status, headers, body: text });
      }
      return RESPONSE_ALREADY_SENT;
    },
    { overrideGlobalObjects: false, errorHandler: () => refusals.malformed(NO_PATH) },
  );
  let isClosing = false;
  const http = createHttpServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      requireHostHeader: false, // rejected later, with a body that explains it
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      connectionsCheckingInterval: timeouts.checkMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (incoming, outgoing) => {
      // The next request must not keep this server alive.
      if (isClosing) outgoing.setHeader('connection', 'close');
      void answer(incoming, outgoing);
    },
  );
  refusals.attach(http);
  http.maxConnections = MAX_CONNECTIONS;
  const boundPort = await bind(http, host, port);
  return {
    url: urlOf(host, boundPort),
    port: boundPort,
    async close(deadlineMs) {
      isClosing = true;
      await closeListening(http, server, deadlineMs);
    },
  };
}

/** Writes the body directly: reading it back from the response stream takes longer than creating it. */
function sendText(outgoing: ServerResponse, { status, headers }: Response, text: string): void {
  const length = Buffer.byteLength(text);
  outgoing.writeHead(status, { ...Object.fromEntries(headers), 'content-length': length });
  outgoing.end(text);
}

export const urlOf = (host: string, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`;

/** Listens; returns the port. */
export function bind(http: HttpServer, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    http.once('error', (error: NodeJS.ErrnoException) => {
      const code = error.code === 'EADDRINUSE' ? 'conflict' : 'io';
      reject(
        new RuvLLMError(code, `cannot listen on ${host} port ${port}: ${error.code ?? error.message}`, {
          cause: error,
          data: { host, port },
        }),
      );
    });
    // The default queue of 511 connections is shorter than a burst: the system would drop the rest, and clients try again in a second.
    http.listen({ port, host, backlog: http.maxConnections }, () => resolve((http.address() as AddressInfo).port));
  });
}

interface EarlyResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/**
 * Responds before the end of a request. Closing at once would reset the connection before the client has read the response; reading on
 * would accept a body that is too large.
 */
export function sendEarly(outgoing: ServerResponse, { status, headers, body }: EarlyResponse): void {
  outgoing.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' });
  outgoing.write(body);
  const timer = setTimeout(() => outgoing.end(), LINGER_MS);
  outgoing.once('close', () => clearTimeout(timer));
}
