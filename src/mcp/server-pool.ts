import { raceAbort } from '../core/abort.ts';
import type { Clock } from '../core/clock.ts';
import { RuvLLMError } from '../core/errors.ts';
import { didYouMean } from '../core/nearest.ts';
import { type McpClient, openMcpClient, type ToolListing } from './client.ts';
import { type Consent, consentFor, type ConsentRules } from './consent.ts';
import type { McpTool, UnusableTool } from './tool-list.ts';
import type { McpToolResult } from './tool-result.ts';
import type { McpTransport } from './transport.ts';

/** How a server is reached. */
export type McpEndpoint =
  | {
      readonly kind: 'stdio';
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      /** Null: the current folder. */
      readonly folder: string | null;
    }
  | { readonly kind: 'http'; readonly url: string; readonly headers: Readonly<Record<string, string>> };

/** A server of the operator, or one that a request names. */
export interface McpServerConfig {
  readonly name: string;
  readonly endpoint: McpEndpoint;
  readonly consent: ConsentRules;
  /** Milliseconds of one call. */
  readonly timeoutMs: number;
  readonly maxResultBytes: number;
  /** Milliseconds that results of tools which only read may be old; 0: such tools are always called. */
  readonly maxAgeMs: number;
  /** Tenants that may use it; null: all. */
  readonly tenants: readonly string[] | null;
}

/** A tool that may be offered to models. */
export interface OfferedTool extends McpTool {
  readonly server: string;
  readonly consent: Exclude<Consent, 'deny'>;
  /** See the server's settings; 0 for a tool with side effects. */
  readonly maxAgeMs: number;
  /** Fails with `tool_failed`, `deadline_exceeded` or `aborted`. */
  call(args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<McpToolResult>;
}

export interface Offer {
  /** Without the denied ones. */
  readonly tools: readonly OfferedTool[];
  readonly unusable: readonly UnusableTool[];
}

/** MCP servers by name. Each is started by its first use, and again after it ended. */
export interface McpServerPool {
  readonly configs: readonly McpServerConfig[];
  /** Fails with `not_found` for an unknown name. */
  offer(name: string, signal: AbortSignal): Promise<Offer>;
  close(): Promise<void>;
}

export interface McpPoolOptions {
  readonly connect: (config: McpServerConfig) => McpTransport;
  readonly clock: Clock;
  readonly version: string;
}

export function createMcpServerPool(configs: readonly McpServerConfig[], options: McpPoolOptions): McpServerPool {
  const { connect, clock, version } = options;
  const clients = new Map<string, Promise<McpClient>>();
  const life = new AbortController();

  /** The caller's signal ends its wait, not the start that other callers wait for. */
  async function clientOf(config: McpServerConfig, signal: AbortSignal): Promise<McpClient> {
    const { name } = config;
    if (life.signal.aborted) throw new RuvLLMError('tool_failed', 'the MCP servers are closed');
    const current = clients.get(name);
    if (current !== undefined) {
      const client = await raceAbort(current, signal);
      if (client.isOpen()) return client;
      if (clients.get(name) === current) {
        clients.delete(name);
        await client.close();
      }
      return clientOf(config, signal);
    }
    const opening = openMcpClient(connect(config), { server: name, clock, version, signal: life.signal });
    clients.set(name, opening);
    // A failed start is tried again by the next use.
    opening.catch(() => clients.get(name) === opening && clients.delete(name));
    return raceAbort(opening, signal);
  }

  function offered(config: McpServerConfig, listing: ToolListing): Offer {
    const tools = listing.tools.flatMap((tool) => {
      const consent = consentFor(config.consent, tool);
      if (consent === 'deny') return [];
      const call: OfferedTool['call'] = async (args, signal) => {
        const { timeoutMs, maxResultBytes } = config;
        const limits = { signal, timeoutMs, maxResultBytes };
        try {
          return await (await clientOf(config, signal)).callTool(tool.name, args, limits);
        } catch (error) {
          // A server that restarted has forgotten the session and did not run the tool.
          if (!(error instanceof RuvLLMError) || error.data['isUndelivered'] !== true) throw error;
          return (await clientOf(config, signal)).callTool(tool.name, args, limits);
        }
      };
      return [{ ...tool, server: config.name, consent, maxAgeMs: tool.isReadOnly ? config.maxAgeMs : 0, call }];
    });
    return { tools, unusable: listing.unusable };
  }

  return {
    configs,
    async offer(name, signal) {
      const config = configs.find((one) => one.name === name);
      if (config === undefined) {
        const names = configs.map((one) => one.name);
        const hint = didYouMean(name, names) || (names.length === 0 ? '' : ` (there are ${names.join(', ')})`);
        throw new RuvLLMError('not_found', `there is no MCP server ${JSON.stringify(name.slice(0, 80))}${hint}`);
      }
      const client = await clientOf(config, signal);
      return offered(config, await client.listTools(signal));
    },
    async close() {
      life.abort();
      const opened = await Promise.allSettled(clients.values());
      clients.clear();
      await Promise.all(opened.map((one) => (one.status === 'fulfilled' ? one.value.close() : undefined)));
    },
  };
}
