import { systemClock } from '../../core/clock.ts';
import type { McpAccess } from '../../server/mcp/access.ts';
import type { CommandContext } from '../command.ts';
import { configuredServers } from '../mcp/configured-servers.ts';

/** The MCP servers that requests may use; null: none. Processes are started by their first use. */
export async function openServedMcp(context: CommandContext): Promise<McpAccess | null> {
  const configs = configuredServers(context);
  const canNameUrls = context.values['--mcp-urls'] === true;
  if (configs.length === 0 && !canNameUrls) return null;
  const { version } = context;
  const { createMcpServerPool } = await import('../../mcp/server-pool.ts');
  const { connectMcp, connectPublicMcp } = await import('../../node/mcp/connect-mcp.ts');
  return {
    pool: createMcpServerPool(configs, { connect: connectMcp, clock: systemClock, version }),
    connectPublic: canNameUrls ? connectPublicMcp : null,
  };
}
