import type { ErrorFormat } from '../route.ts';

/** MCP's errors before a message was read. */
export const mcpErrors: ErrorFormat = {
  // The transport of MCP knows 400 for every message that is not accepted.
  status: ({ status }) => (status === 422 ? 400 : status),
  body: ({ code, message, status }) => ({
    jsonrpc: '2.0',
    id: null,
    error: { code: code === 'invalid_json' ? -32_700 : status < 500 ? -32_600 : -32_603, message },
  }),
};
