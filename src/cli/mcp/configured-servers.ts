import type { McpServerConfig } from '../../mcp/server-pool.ts';
import type { CommandContext } from '../command.ts';
import { requiresError, usageError } from '../usage-error.ts';

/** The servers of `--mcp`, as the settings file describes them. */
export function configuredServers({
  values,
  config,
}: Pick<CommandContext, 'values' | 'config'>): readonly McpServerConfig[] {
  const names = (values['--mcp'] as string[] | undefined) ?? [];
  if (names.length === 0) return [];
  if (config.file === null) throw requiresError('--mcp', 'a settings file with mcpServers; see ruvllm config show');
  const configs = config.readMcp(names);
  const unknown = names.find((name) => !configs.some((one) => one.name === name));
  if (unknown === undefined) return configs;
  const known = config.mcpNames.join(', ') || 'none';
  throw usageError(`--mcp ${unknown}: ${config.file.path} has no such MCP server (it has: ${known})`, '--mcp');
}
