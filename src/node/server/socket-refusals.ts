import { type IncomingMessage, type Server as HttpServer, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Server } from '../../server/app.ts';
import { describeFailure, refusal } from '../../server/errors.ts';
import { openaiErrors } from '../../server/wire/openai/error-body.ts';

export interface RefusalLimits {
  readonly maxHeaderBytes: number;
  readonly timeouts: SocketTimeouts;
}

type Reason = readonly [status: number, code: string, message: string];

/** What Node's parser says of a request, in our words; the rest of its codes are all about bytes that are no HTTP. */
function reasonOf({ code }: NodeJS.ErrnoException, { maxHeaderBytes, timeouts }: RefusalLimits): Reason {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return [431, 'headers_too_large', `the headers have more than ${maxHeaderBytes} bytes`];
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const { headersMs, requestMs } = timeouts;
    return [408, 'request_timeout', `the headers took more than ${headersMs} ms, or the request ${requestMs} ms`];
  }
  return [400, 'malformed_request', 'the request is not HTTP as it should be'];
}

/** The failures of requests that never become one: they are told, counted and logged like all others. */
export function createRefusals({ services }: Server, limits: RefusalLimits) {
  const tell = ([status, code, message]: Reason): { body: string; headers: Record<string, string> } => {
    const requestId = crypto.randomUUID();
    services.metrics.countRequest('unknown', status, 0);
    services.logger.log('info', 'request', { requestId, method: null, route: null, status, code });
    const body = JSON.stringify(openaiErrors.body(describeFailure(refusal(status, code, message)), requestId));
    const headers = {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'x-request-id': requestId,
      'request-id': requestId,
      connection: 'close',
    };
    return { body, headers };
  };

  return {
    /** Where a request cannot be told from its bytes: without a host, with a path that is none. */
    malformed(): Response {
      const { body, headers } = tell([400, 'malformed_request', 'the request has no valid host and path']);
      return new Response(body, { status: 400, headers });
    },
    attach(http: HttpServer): void {
      /** What is being answered on each socket: an answer that has begun cannot be followed by another. */
      const answers = new WeakMap<Duplex, ServerResponse>();
      http.on('request', (incoming: IncomingMessage, outgoing: ServerResponse) => {
        answers.set(incoming.socket, outgoing);
      });
      http.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
        const answer = answers.get(socket);
        const hasBegun = answer !== undefined && answer.headersSent && !answer.writableFinished;
        if (socket.writable && !hasBegun && error.code !== 'ECONNRESET') {
          const reason = reasonOf(error, limits);
          const { body, headers } = tell(reason);
          const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
          socket.write(`HTTP/1.1 ${reason[0]} ${STATUS_CODES[reason[0]]}\r\n${lines.join('')}\r\n${body}`);
        }
        socket.destroy();
      });
      http.on('checkExpectation', (incoming: IncomingMessage, outgoing: ServerResponse) => {
        const expected = JSON.stringify(String(incoming.headers.expect).slice(0, 80));
        const { body, headers } = tell([417, 'expectation_failed', `${expected} cannot be expected here`]);
        outgoing.writeHead(417, headers).end(body);
      });
    },
  };
}

/** A client that takes longer holds a connection and sends nothing. */
export interface SocketTimeouts {
  /** For its headers. */
  readonly headersMs: number;
  /** For its whole request. */
  readonly requestMs: number;
  /** How often Node looks for the two above; with its own 30 s they would be three times as long. */
  readonly checkMs: number;
}
