import { RuvLLMError } from '../../core/errors.ts';
import { createMcpHttp, type McpFetch } from '../../mcp/http-transport.ts';
import type { McpServerConfig } from '../../mcp/server-pool.ts';
import type { McpTransport } from '../../mcp/transport.ts';
import { createMcpProcess } from '../../platform/node/process/mcp-process.ts';
import { fetchPublic } from '../../platform/node/process/public-fetch.ts';

const httpOf = (config: McpServerConfig, fetch: McpFetch): McpTransport => {
  if (config.endpoint.kind !== 'http') throw new RuvLLMError('internal', 'a caller cannot name a command');
  const { url, headers } = config.endpoint;
  return createMcpHttp({ server: config.name, url, headers, fetch });
};

/** Connects to a server of the operator, which may be on this machine. */
export function connectMcp(config: McpServerConfig): McpTransport {
  const { name: server, endpoint } = config;
  if (endpoint.kind === 'http') return httpOf(config, (url, init) => fetch(url, init));
  const { command, args, env, folder } = endpoint;
  return createMcpProcess({ server, command, args, env, folder });
}

/** Connects to a server that a caller named: only to public addresses, however its name resolves. */
export const connectPublicMcp = (config: McpServerConfig): McpTransport => httpOf(config, (url, init) => fetchPublic(url, init)); // prettier-ignore
