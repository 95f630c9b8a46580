// MCP servers inside this process.
import { systemClock } from '../../src/core/clock.ts';
import type { Consent } from '../../src/mcp/consent.ts';
import { isRequest, readMessage } from '../../src/mcp/json-rpc.ts';
import { createMcpServerPool, type McpServerConfig, type McpServerPool } from '../../src/mcp/server-pool.ts';
import type { McpTransport, TransportEvents } from '../../src/mcp/transport.ts';

export interface FakeTool {
  readonly isReadOnly?: boolean;
  readonly inputSchema?: object;
  run(args: any): object;
}

export const textResult = (text: string): object => ({ content: [{ type: 'text', text }] });

/** A transport to a server with these tools. */
export function createFakeTransport(tools: Readonly<Record<string, FakeTool>>): McpTransport {
  let events: TransportEvents;
  return {
    async open(given) {
      events = given;
    },
    async send(value) {
      const message = readMessage(value)!;
      if (!isRequest(message)) return;
      const { id, method, params = {} } = message;
      const reply = (result: object): void =>
        events.onMessage({ jsonrpc: '2.0', id, result }, JSON.stringify(result).length);
      if (method === 'initialize') reply({ protocolVersion: params['protocolVersion'] });
      else if (method === 'tools/list') {
        reply({
          tools: Object.entries(tools).map(([name, { isReadOnly = true, inputSchema = { type: 'object' } }]) => ({
            name,
            description: `The tool ${name}.`,
            inputSchema,
            annotations: { readOnlyHint: isReadOnly },
          })),
        });
      } else reply(tools[params['name'] as string]!.run(params['arguments']));
    },
    async close() {},
  };
}

export const configOf = (name: string, more: Partial<McpServerConfig> & { rule?: Consent } = {}): McpServerConfig => {
  const { rule = null, ...config } = more;
  return {
    name,
    endpoint: { kind: 'http', url: 'http://fake/', headers: {} },
    consent: { server: rule, tools: new Map() },
    timeoutMs: 10_000,
    maxResultBytes: 1000,
    maxAgeMs: 0,
    tenants: null,
    ...config,
  };
};

export function createFakePool(
  servers: Readonly<Record<string, Readonly<Record<string, FakeTool>>>>,
  configs: readonly McpServerConfig[] = Object.keys(servers).map((name) => configOf(name)),
): McpServerPool {
  return createMcpServerPool(configs, {
    connect: ({ name }) => createFakeTransport(servers[name]!),
    clock: systemClock,
    version: '0',
  });
}
