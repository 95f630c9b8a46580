import type { McpServerConfig, McpServerPool, OfferedTool } from '../../runtime/lower-layers.ts';
import { CALL_LIMITS, createMcpServerPool, DEFAULT_CONSENT } from '../../runtime/mcp.ts';
import { type RunnableTool, toRunnables } from '../../runtime/tools/runnable-tool.ts';
import { refusal } from '../errors.ts';
import type { Exchange } from '../route.ts';
import { matchesFilter, type McpToolSpec } from '../wire/openai/responses/mcp-tools.ts';

/** A tool of an MCP server in a request. */
export interface RequestTool {
  readonly label: string;
  readonly tool: OfferedTool;
  readonly runnable: RunnableTool;
  /** Whether the caller wants to approve each call. */
  readonly needsApproval: boolean;
}

/** The MCP tools of one request. */
export interface RequestTools {
  readonly lists: readonly { readonly label: string; readonly tools: readonly OfferedTool[] }[];
  readonly tools: readonly RequestTool[];
  /** Closes the connections that were opened for this request. */
  close(): Promise<void>;
}

/** Connects to the servers of a request and lists their tools. `taken`: names of its functions. */
export async function openRequestTools(
  { services, caller }: Pick<Exchange, 'services' | 'caller'>,
  specs: readonly McpToolSpec[],
  taken: ReadonlySet<string>,
): Promise<RequestTools> {
  const own: McpServerPool[] = [];
  const close = async (): Promise<void> => void (await Promise.all(own.map((pool) => pool.close())));
  const labels = new Set<string>();

  function poolOf({ label, url, headers }: McpToolSpec, path: string): McpServerPool {
    const access = services.mcp;
    if (url === null) {
      const config = access?.pool.configs.find(({ name }) => name === label);
      if (config !== undefined && (config.tenants?.includes(caller.tenant) ?? true)) return access!.pool;
      const message = `'${path}.server_label': this server offers no MCP server ${JSON.stringify(label)}; see ruvllm serve --mcp`;
      throw refusal(400, 'mcp_server_not_found', message, { param: `${path}.server_label` });
    }
    const connect = access?.connectPublic ?? null;
    if (connect === null) {
      const message = `'${path}.server_url': this server does not connect to MCP servers that requests name; its operator can allow it with --mcp-urls`;
      throw refusal(403, 'mcp_server_url_not_allowed', message, {
        param: `${path}.server_url`,
        type: 'permission_error',
      });
    }
    if (!isHttpUrl(url)) {
      const message = `'${path}.server_url' must be an http or https URL without credentials`;
      throw refusal(400, 'invalid_value', message, { param: `${path}.server_url` });
    }
    const config: McpServerConfig = {
      name: label,
      endpoint: { kind: 'http', url, headers },
      // The server is the caller's: whether its tools may be called is the caller's decision, see `require_approval`.
      consent: { ...DEFAULT_CONSENT, server: 'allow' },
      ...CALL_LIMITS,
      maxAgeMs: 0,
      tenants: null,
    };
    const pool = createMcpServerPool([config], { connect, clock: services.clock, version: services.version });
    own.push(pool);
    return pool;
  }

  try {
    const offers: { spec: McpToolSpec; tools: readonly OfferedTool[] }[] = [];
    for (const [index, spec] of specs.entries()) {
      const path = `tools[${index}]`;
      if (labels.has(spec.label)) throw refusal(400, 'invalid_value', `'tools' has two MCP servers ${JSON.stringify(spec.label)}`, { param: 'tools' }); // prettier-ignore
      labels.add(spec.label);
      const { tools, unusable } = await poolOf(spec, path).offer(spec.label, caller.signal);
      for (const { name, reason } of unusable) {
        services.logger.log('info', 'mcp tool not offered', {
          requestId: caller.requestId,
          server: spec.label,
          tool: name,
          reason,
        });
      }
      const missing = spec.allowed?.names?.find((name) => !tools.some((tool) => tool.name === name));
      if (missing !== undefined) {
        const message = `'${path}.allowed_tools': the MCP server ${JSON.stringify(spec.label)} offers no tool ${JSON.stringify(missing)}`;
        throw refusal(400, 'mcp_tool_not_found', message, { param: `${path}.allowed_tools` });
      }
      offers.push({ spec, tools: tools.filter((tool) => spec.allowed === null || matchesFilter(spec.allowed, tool)) });
    }
    const all = offers.flatMap(({ spec, tools }) => tools.map((tool) => ({ spec, tool })));
    const runnables = toRunnables(all.map(({ tool }) => tool), taken); // prettier-ignore
    return {
      lists: offers.map(({ spec, tools }) => ({ label: spec.label, tools })),
      tools: all.map(({ spec, tool }, index) => ({
        label: spec.label,
        tool,
        runnable: runnables[index]!,
        needsApproval: spec.needsApproval(tool),
      })),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function isHttpUrl(text: string): boolean {
  try {
    const { protocol, username, password } = new URL(text);
    return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
  } catch {
    return false;
  }
}
