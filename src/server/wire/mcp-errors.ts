import type { ErrorFormat } from '../route.ts';

/** MCP's errors before a message was read. */
export const mcpErrors: ErrorFormat = {
  body: ({ message, status }) => ({
    jsonrpc: '2.0',
    id: null,
    error: { code: status < 500 ? -32_600 : -32_603, message },
  }),
};
