import { type IncomingMessage, type Server as HttpServer, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from '../../server/logger.ts';
import type { ServerMetrics } from '../../server/metrics/server-metrics.ts';
import { describeFailure, refusal } from '../../server/errors.ts';
import { openaiErrors } from '../../server/wire/openai/error-body.ts';

export interface RefusalLimits {
  readonly maxHeaderBytes: number;
  readonly timeouts: SocketTimeouts;
}

type Reason = readonly [status: number, code: string, message: string];

export const NO_PATH: Reason = [400, 'malformed_request', 'the request has no valid host and path'];

/** Describes an error of Node's HTTP parser; its other codes all mean invalid HTTP. */
function reasonOf({ code }: NodeJS.ErrnoException, { maxHeaderBytes, timeouts }: RefusalLimits): Reason {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return [431, 'headers_too_large', `the headers have more than ${maxHeaderBytes} bytes`];
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const { headersMs, requestMs } = timeouts;
    return [408, 'request_timeout', `the headers took more than ${headersMs} ms, or the request ${requestMs} ms`];
  }
  return [400, 'malformed_request', 'the request is not valid HTTP'];
}

/** Where refused requests are counted and logged. */
export interface RefusalSinks {
  readonly services: { readonly metrics: Pick<ServerMetrics, 'countRequest'>; readonly logger: Logger };
}

/** Answers, counts and logs requests that fail before they reach a route. */
export function createRefusals({ services }: RefusalSinks, limits: RefusalLimits) {
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
    malformed(reason: Reason): Response {
      const { body, headers } = tell(reason);
      return new Response(body, { status: reason[0], headers });
    },
    attach(http: HttpServer): void {
      /** Responses in progress by socket: a second response cannot follow. */
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
        const { body, headers } = tell([417, 'expectation_failed', `the expectation ${expected} is not supported`]);
        outgoing.writeHead(417, headers).end(body);
      });
    },
  };
}

/** Slower clients are disconnected. */
export interface SocketTimeouts {
  /** For its headers. */
  readonly headersMs: number;
  /** For its whole request. */
  readonly requestMs: number;
  /** How often Node checks the two above; its default of 30 s would triple them. */
  readonly checkMs: number;
}
