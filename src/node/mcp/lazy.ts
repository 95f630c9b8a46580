import type { McpServerSettings } from '../../mcp/server-config.ts';
import type { McpServers } from '../../runtime/tools/mcp-servers.ts';

/**
 * MCP servers by name, in the form of `mcpServers` in other clients: `{ command, args, env }` or `{ url, headers }`. Each is started by
 * its first use; close them to end their processes.
 */
export async function openMcpServers(servers: Readonly<Record<string, McpServerSettings>>): Promise<McpServers> {
  const { openMcpServers: open } = await import('./open-mcp-servers.ts');
  return open(servers);
}
