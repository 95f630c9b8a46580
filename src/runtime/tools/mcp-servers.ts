import type { McpServerPool, OfferedTool } from '../../mcp/server-pool.ts';
import type { UnusableTool } from '../../mcp/tool-list.ts';
import { type RunnableTool, toRunnables } from './runnable-tool.ts';

/** A tool of an MCP server that models are not offered. */
export interface UnusableMcpTool extends UnusableTool {
  readonly server: string;
}

/** MCP servers whose tools models may use. */
export interface McpServers extends AsyncDisposable {
  readonly names: readonly string[];
  /** The tools of these servers, or of all, without denied ones, under names that a model can tell apart; for `runTools`. */
  tools(names?: readonly string[], options?: McpToolsOptions): Promise<readonly RunnableTool[]>;
  /** Tools of the servers used so far that could not be offered, and why. */
  readonly unusable: readonly UnusableMcpTool[];
  /** Ends the connections and processes. */
  close(): Promise<void>;
}

/** Options of `McpServers.tools`. */
export interface McpToolsOptions {
  readonly signal?: AbortSignal;
  /** Names that other tools of the request have. Default: none. */
  readonly taken?: Iterable<string>;
}

export function createMcpServers(pool: McpServerPool): McpServers {
  const unusable = new Map<string, readonly UnusableMcpTool[]>();
  const close = (): Promise<void> => pool.close();
  return {
    names: pool.configs.map(({ name }) => name),
    async tools(
      names = pool.configs.map(({ name }) => name),
      { signal = new AbortController().signal, taken = [] } = {},
    ) {
      const offered: OfferedTool[] = [];
      for (const server of new Set(names)) {
        const offer = await pool.offer(server, signal);
        offered.push(...offer.tools);
        unusable.set(server, offer.unusable.map((tool) => ({ ...tool, server }))); // prettier-ignore
      }
      return toRunnables(offered, new Set(taken));
    },
    get unusable() {
      return [...unusable.values()].flat();
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
