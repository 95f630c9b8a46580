import { serializeError } from '../../core/errors.ts';
import {
  failureOf,
  isRecord,
  type JsonRpcFailure,
  type JsonRpcId,
  type JsonRpcResult,
  RPC_CODES,
} from '../../mcp/json-rpc.ts';
import type { McpServer } from '../../mcp/server.ts';
import type { NamedServer } from '../servers/ask-server.ts';

/** Passes messages to `POST /mcp` of a running server, with the caller's key. */
export function bridgeToServer({ base, key }: NamedServer): McpServer {
  return {
    async handle(value, signal) {
      const id = isRecord(value) && 'method' in value ? ((value['id'] ?? null) as JsonRpcId | null) : null;
      try {
        const response = await fetch(`${base}/mcp`, {
          method: 'POST',
          redirect: 'error', // a redirect would send the key to another server
          headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          },
          body: JSON.stringify(value),
          signal,
        });
        if (response.status === 202) return null;
        const reply = (await response.json()) as JsonRpcResult | JsonRpcFailure;
        // An error of the route, such as a wrong key, does not know the id.
        return reply.id === null && id !== null ? { ...reply, id } : reply;
      } catch (error) {
        return id === null
          ? null
          : failureOf(id, RPC_CODES.internal, `cannot reach ${base}: ${serializeError(error).message}`);
      }
    },
  };
}
