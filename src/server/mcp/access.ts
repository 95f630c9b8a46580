import type { McpServerConfig, McpServerPool, McpTransport } from '../../runtime/lower-layers.ts';

/** The MCP servers that requests may use. */
export interface McpAccess {
  /** Those of the operator. */
  readonly pool: McpServerPool;
  /** Connects to a server that a request names by its URL, on public addresses only; null: requests may not name one. */
  readonly connectPublic: ((config: McpServerConfig) => McpTransport) | null;
}
