import { Agent, type IncomingMessage, request as sendHttp } from 'node:http';
import { Agent as TlsAgent, request as sendHttps } from 'node:https';
import { RuvLLMError } from '../../../core/errors.ts';
import type { Upstream, UpstreamRequest, UpstreamResponse } from '../../../gateway/types.ts';

/** Below the 75 s after which a node closes an idle connection: a request on a connection that is being closed fails. */
const IDLE_MS = 30_000;
const CONNECT_MS = 2000;
const MAX_IDLE_CONNECTIONS = 256;

/** Connections to nodes over HTTP, kept open between requests. */
export function createHttpUpstream(): Upstream {
  const options = { keepAlive: true, maxFreeSockets: MAX_IDLE_CONNECTIONS, timeout: IDLE_MS, noDelay: true };
  const agent = new Agent(options);
  const tlsAgent = new TlsAgent(options);
  return {
    send(baseUrl, request) {
      const url = new URL(baseUrl);
      const isTls = url.protocol === 'https:';
      return sendOnce(request, {
        hostname: url.hostname.replaceAll(/^\[|\]$/g, ''),
        port: url.port || (isTls ? 443 : 80),
        send: isTls ? sendHttps : sendHttp,
        agent: isTls ? tlsAgent : agent,
      });
    },
    close() {
      agent.destroy();
      tlsAgent.destroy();
    },
  };
}

interface Connection {
  readonly hostname: string;
  readonly port: string | number;
  readonly send: typeof sendHttp;
  readonly agent: Agent;
}

function sendOnce(
  { method, target, headers, body, signal }: UpstreamRequest,
  { send, ...connection }: Connection,
): Promise<UpstreamResponse> {
  return new Promise((resolve, reject) => {
    let isSent = false;
    const fail = (error: Error & { code?: string }): void => {
      const reason = error.code ?? error.message;
      reject(new RuvLLMError('remote_failed', `the connection failed: ${reason}`, { cause: error, data: { isSent } }));
    };
    const hasBody = body.length > 0;
    const outgoing = send({
      ...connection,
      method,
      path: target,
      headers: hasBody ? { ...headers, 'content-length': body.length } : headers,
      signal,
    });
    outgoing.once('socket', (socket) => {
      // An open connection may deliver the request even if no answer comes back.
      if (!socket.connecting) return void (isSent = true);
      const timer = setTimeout(() => outgoing.destroy(new Error(`no connection within ${CONNECT_MS} ms`)), CONNECT_MS);
      socket.once('connect', () => {
        isSent = true;
        clearTimeout(timer);
      });
      socket.once('close', () => clearTimeout(timer));
    });
    outgoing.once('error', fail);
    outgoing.once('response', (incoming: IncomingMessage) => {
      outgoing.off('error', fail);
      outgoing.on('error', () => {}); // the reader of the body sees it
      resolve({ status: incoming.statusCode!, headers: flatten(incoming.headers), body: incoming });
    });
    outgoing.end(hasBody ? body : undefined);
  });
}

function flatten(headers: IncomingMessage['headers']): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}
