import { defineFlags, type Flag } from '../flags.ts';

/** `--mcp` of `run` and `chat`. */
export const MCP_FLAGS: readonly Flag[] = defineFlags({
  '--mcp <name>...': 'offer the model the tools of this MCP server of the settings file (repeatable); see docs/mcp.md',
});
