import { RuvLLMError, serializeError } from '../../core/errors.ts';
import { failureOf, idOf, isRecord, isReply, readMessage, RPC_CODES } from '../../mcp/json-rpc.ts';
import type { McpServer } from '../../mcp/server.ts';
import type { NamedServer } from '../servers/ask-server.ts';

/** Passes messages to `POST /mcp` of a running server, with the caller's key. */
export function bridgeToServer({ base, key }: NamedServer): McpServer {
  return {
    async handle(value, signal) {
      const id = isRecord(value) && 'method' in value ? idOf(value) : null;
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
        const reply = readMessage(await response.json());
        if (reply === null || !isReply(reply)) throw new RuvLLMError('remote_failed', 'it answered with no reply');
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
