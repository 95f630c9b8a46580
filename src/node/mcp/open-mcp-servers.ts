import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemClock } from '../../core/clock.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { type McpServerSettings, readMcpServers } from '../../mcp/server-config.ts';
import { createMcpServerPool } from '../../mcp/server-pool.ts';
import { createMcpServers, type McpServers } from '../../runtime/tools/mcp-servers.ts';
import { connectMcp } from './connect-mcp.ts';
import { PACKAGE_FOLDER } from '../../platform/node/files/package-folder.ts';

function packageVersion(): string {
  const text = readFileSync(new URL('package.json', PACKAGE_FOLDER), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/**
 * MCP servers by name, in the form of `mcpServers` in other clients: `{ command, args, env }` or `{ url, headers }`. Each is started by
 * its first use; close them to end their processes.
 */
export function openMcpServers(servers: Readonly<Record<string, McpServerSettings>>): McpServers {
  const configs = readMcpServers(servers, {
    environment: process.env,
    reject(path, message) {
      throw new RuvLLMError('invalid_option', message, { data: { option: path } });
    },
    resolveFolder: (folder) => resolve(folder),
  });
  return createMcpServers(
    createMcpServerPool(configs, { connect: connectMcp, clock: systemClock, version: packageVersion() }),
  );
}
