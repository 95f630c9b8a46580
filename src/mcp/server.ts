import { onAbort } from '../core/abort.ts';
import { serializeError } from '../core/errors.ts';
import type { JsonSchema } from '../core/kinds.ts';
import { showValue } from '../core/show-value.ts';
import {
  failureOf,
  idOf,
  isRecord,
  isReply,
  isRequest,
  type JsonRpcFailure,
  type JsonRpcId,
  type JsonRpcResult,
  readMessage,
  replyTo,
  RPC_CODES,
} from './json-rpc.ts';
import { MCP_LIMITS, PROTOCOL_VERSIONS } from './limits.ts';

/** A tool that other programs may call. */
export interface ServedTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly isReadOnly: boolean;
  /** Text, or an object that becomes structured content. Errors become results that say what is wrong. */
  call(args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<string | object>;
}

export interface McpServer {
  /** The reply to a message; null: it has none. Never rejects. */
  handle(value: unknown, signal: AbortSignal): Promise<JsonRpcResult | JsonRpcFailure | null>;
}

export interface McpServerInfo {
  readonly version: string;
  readonly instructions: string;
  /** Hears of errors in our own code, whose messages clients do not see. */
  report(error: unknown): void;
}

/** A message of an error in our own code says nothing to a client and may say too much. */
const HIDDEN = 'internal error; the log of the server has the details';

/** An MCP server that offers these tools. It keeps no state between messages except for calls in progress. */
export function createMcpServer(
  tools: readonly ServedTool[],
  { version, instructions, report }: McpServerInfo,
): McpServer {
  const running = new Map<JsonRpcId, AbortController>();

  function initialize(params: Readonly<Record<string, unknown>>): object {
    const wanted = params['protocolVersion'];
    return {
      protocolVersion: PROTOCOL_VERSIONS.find((known) => known === wanted) ?? PROTOCOL_VERSIONS[0],
      capabilities: { tools: {} },
      serverInfo: { name: 'ruvllm', title: 'RuvLLM', version },
      instructions,
    };
  }

  const list = (): object => ({
    tools: tools.map(({ name, description, inputSchema, isReadOnly }) => ({
      name,
      description,
      inputSchema,
      annotations: { readOnlyHint: isReadOnly, openWorldHint: false },
    })),
  });

  async function call(id: JsonRpcId, params: Readonly<Record<string, unknown>>, parent: AbortSignal) {
    const { name, arguments: args = {} } = params;
    const tool = tools.find((one) => one.name === name);
    if (tool === undefined) return failureOf(id, RPC_CODES.invalidParams, `there is no tool ${showValue(name)}`); // prettier-ignore
    if (!isRecord(args)) return failureOf(id, RPC_CODES.invalidParams, 'arguments must be an object');
    if (running.has(id))
      return failureOf(id, RPC_CODES.invalidRequest, `a request with the id ${showValue(id)} is in progress`);
    const own = new AbortController();
    const unlink = onAbort(parent, () => own.abort());
    running.set(id, own);
    try {
      const result = await tool.call(args, own.signal);
      if (typeof result === 'string') return replyTo(id, { content: [textOf(result)], isError: false });
      return replyTo(id, { content: [textOf(JSON.stringify(result))], structuredContent: result, isError: false });
    } catch (error) {
      const { code, message } = serializeError(error);
      if (code === 'internal') report(error);
      const shown = code === 'internal' ? HIDDEN : message;
      return replyTo(id, { content: [textOf(`${code}: ${shown}`)], isError: true });
    } finally {
      running.delete(id);
      unlink();
    }
  }

  async function answer(value: unknown, signal: AbortSignal): Promise<JsonRpcResult | JsonRpcFailure | null> {
    const message = readMessage(value);
    if (message === null) return failureOf(idOf(value), RPC_CODES.invalidRequest, describeInvalid(value));
    if (isReply(message)) return null;
    const params = message.params ?? {};
    if (!isRequest(message)) {
      if (message.method === 'notifications/cancelled') running.get(params['requestId'] as JsonRpcId)?.abort();
      return null;
    }
    const { id, method } = message;
    if (method === 'initialize') return replyTo(id, initialize(params));
    if (method === 'ping') return replyTo(id, {});
    if (method === 'tools/list') return replyTo(id, list());
    if (method === 'tools/call') return call(id, params, signal);
    return failureOf(id, RPC_CODES.unknownMethod, `there is no method ${showValue(method)}`);
  }

  return {
    async handle(value, signal) {
      try {
        return await answer(value, signal);
      } catch (error) {
        report(error);
        return failureOf(idOf(value), RPC_CODES.internal, HIDDEN);
      }
    },
  };
}

/** What is wrong with a value that is no message. */
function describeInvalid(value: unknown): string {
  const [what, why] = ['not a message of JSON-RPC 2.0', 'batches are not supported'];
  if (!isRecord(value)) return `${what}: it is ${showValue(value)}; ${why}`;
  const { jsonrpc, id, method, params } = value;
  if (jsonrpc !== '2.0') return `${what}: jsonrpc is ${showValue(jsonrpc)}`;
  if (id !== undefined && idOf(value) === null)
    return `${what}: the id must be an integer or a text of at most ${MCP_LIMITS.maxIdChars} characters, it is ${showValue(id)}`;
  if (typeof method !== 'string') return `${what}: method is ${showValue(method)}`;
  return `${what}: params must be an object, it is ${showValue(params)}`;
}

const textOf = (text: string): object => ({ type: 'text', text });
