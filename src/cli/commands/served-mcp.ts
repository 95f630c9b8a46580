import { systemClock } from '../../core/clock.ts';
import { createMcpServerPool } from '../../mcp/server-pool.ts';
import { connectMcp, connectPublicMcp } from '../../node/mcp/connect-mcp.ts';
import type { McpAccess } from '../../server/mcp/access.ts';
import type { CommandContext } from '../command.ts';
import { configuredServers } from '../mcp/configured-servers.ts';

/** The MCP servers that requests may use; null: none. Processes are started by their first use. */
export function openServedMcp(context: CommandContext): McpAccess | null {
  const configs = configuredServers(context);
  const canNameUrls = context.values['--mcp-urls'] === true;
  if (configs.length === 0 && !canNameUrls) return null;
  const { version } = context;
  return {
    pool: createMcpServerPool(configs, { connect: connectMcp, clock: systemClock, version }),
    connectPublic: canNameUrls ? connectPublicMcp : null,
  };
}
