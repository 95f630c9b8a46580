/** The parts of MCP that the server uses. */
export { DEFAULT_CONSENT } from '../mcp/consent.ts';
export { RPC_CODES } from '../mcp/json-rpc.ts';
export { CALL_LIMITS, PROTOCOL_VERSIONS } from '../mcp/limits.ts';
export { createMcpServerPool } from '../mcp/server-pool.ts';
export { createMcpServer } from '../mcp/server.ts';
