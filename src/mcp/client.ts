import { linkAbort, raceAbort } from '../core/abort.ts';
import type { Clock } from '../core/clock.ts';
import { type ErrorData, RuvLLMError, serializeError } from '../core/errors.ts';
import { showValue } from '../core/show-value.ts';
import {
  failureOf,
  idOf,
  isReply,
  isRequest,
  type JsonRpcId,
  type JsonRpcMessage,
  type JsonRpcResult,
  readMessage,
  replyTo,
  RPC_CODES,
} from './json-rpc.ts';
import { MCP_LIMITS, PROTOCOL_VERSIONS } from './limits.ts';
import { type McpTool, readTool, type UnusableTool } from './tool-list.ts';
import { type McpToolResult, readToolResult } from './tool-result.ts';
import type { McpTransport } from './transport.ts';

export interface McpClientOptions {
  /** The name of the server in errors. */
  readonly server: string;
  readonly clock: Clock;
  readonly version: string;
  readonly signal: AbortSignal;
  /** Milliseconds to connect and initialize. Default: see `MCP_LIMITS`. */
  readonly openTimeoutMs?: number;
}

export interface ToolCallLimits {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly maxResultBytes: number;
}

export interface ToolListing {
  readonly tools: readonly McpTool[];
  readonly unusable: readonly UnusableTool[];
}

/** An initialized connection to an MCP server. */
export interface McpClient {
  /** False once the server is gone; calls then fail. */
  isOpen(): boolean;
  /** All tools; kept until the server says that the list has changed. */
  listTools(signal: AbortSignal): Promise<ToolListing>;
  /** Fails with `tool_failed`, `deadline_exceeded` or `aborted`; a tool that reports a failure is a result. */
  callTool(name: string, args: Readonly<Record<string, unknown>>, limits: ToolCallLimits): Promise<McpToolResult>;
  close(): Promise<void>;
}

/** A result and the bytes of its message. */
interface Reply {
  readonly result: JsonRpcResult['result'];
  readonly numBytes: number;
}

interface PendingCall {
  resolve(reply: Reply): void;
  reject(error: RuvLLMError): void;
}

/** Connects to a server and initializes it. */
export async function openMcpClient(transport: McpTransport, options: McpClientOptions): Promise<McpClient> {
  const { server, clock } = options;
  const pending = new Map<JsonRpcId, PendingCall>();
  const life = new AbortController();
  let nextId = 0;
  let closed: RuvLLMError | null = null;
  let listing: ToolListing | null = null;

  let numAnswering = 0;

  const failed = (what: string, cause?: unknown, data: ErrorData = {}): RuvLLMError =>
    new RuvLLMError('tool_failed', `MCP server "${server}": ${what}`, { cause, data: { server, ...data } });
  const exceeded = (what: string, limit: number): RuvLLMError =>
    new RuvLLMError('limit_exceeded', `MCP server "${server}"${what}`, { data: { server, limit } });

  function end(error: RuvLLMError): void {
    closed ??= error;
    for (const call of pending.values()) call.reject(closed);
    pending.clear();
    listing = null;
    life.abort();
  }

  function receive(value: unknown, numBytes: number): void {
    const message = readMessage(value);
    if (message === null) {
      // A broken reply must end its call, which would wait for its time limit otherwise.
      const id = idOf(value);
      if (id !== null) take(id)?.reject(failed('it sent a reply that is not valid JSON-RPC 2.0'));
      return;
    }
    if (isReply(message)) {
      if (message.id === null) return;
      const call = take(message.id);
      if ('result' in message) call?.resolve({ result: message.result, numBytes });
      else call?.reject(failed(`error ${message.error.code}: ${message.error.message}`));
    } else if (isRequest(message)) {
      const isPing = message.method === 'ping';
      const unknown = `this client does not offer ${message.method.slice(0, 100)}`;
      const reply = isPing ? replyTo(message.id, {}) : failureOf(message.id, RPC_CODES.unknownMethod, unknown);
      // It may ask more often than we can answer.
      if (numAnswering >= MCP_LIMITS.maxOpenRequests) return;
      numAnswering++;
      deliver(reply)
        .catch(() => {}) // a connection that is gone reports itself
        .finally(() => numAnswering--);
    } else if (message.method === 'notifications/tools/list_changed') listing = null;
  }

  /** Without an id nobody knows which call it was an answer to. */
  function receiveExcess(id: JsonRpcId | null, what: string, limit: number): void {
    const error = failed(`it sent ${what}`, undefined, { limit });
    if (id !== null) take(id)?.reject(error);
    else end(error);
  }

  function take(id: JsonRpcId): PendingCall | undefined {
    const call = pending.get(id);
    pending.delete(id);
    return call;
  }

  /** Sends a message that has no reply; a server that does not take it cannot keep us waiting. */
  async function deliver(message: JsonRpcMessage): Promise<void> {
    const abortion = linkAbort(life.signal);
    const cancelTimer = clock.setTimer(MCP_LIMITS.deliverTimeoutMs, abortion.abort);
    try {
      await raceAbort(transport.send(message, abortion.signal), abortion.signal);
    } finally {
      cancelTimer();
      abortion.unlink();
    }
  }

  const notify = (method: string, params?: object): Promise<void> =>
    deliver({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params: { ...params } }) });

  async function request(
    method: string,
    params: object,
    { signal, timeoutMs }: Pick<ToolCallLimits, 'signal' | 'timeoutMs'>,
  ): Promise<Reply> {
    if (closed !== null) throw closed;
    const id = nextId++;
    const abortion = linkAbort(signal);
    let isLate = false;
    const cancelTimer = clock.setTimer(timeoutMs, () => {
      isLate = true;
      abortion.abort();
    });
    const reply = new Promise<Reply>((resolve, reject) => pending.set(id, { resolve, reject }));
    reply.catch(() => {}); // the race below may have ended
    try {
      const sent = transport.send({ jsonrpc: '2.0', id, method, params: { ...params } }, abortion.signal);
      // A reply may come before `send` resolves; a send that fails means that none will come.
      const failure = sent.then(() => new Promise<never>(() => {}));
      return await raceAbort(Promise.race([reply, failure]), abortion.signal);
    } catch (error) {
      // Not for `initialize`, which must not be cancelled.
      const canCancel = abortion.signal.aborted && closed === null && method !== 'initialize';
      if (canCancel) notify('notifications/cancelled', { requestId: id, reason: isLate ? 'time limit' : 'cancelled' }).catch(() => {}); // prettier-ignore
      if (isLate) {
        throw new RuvLLMError(
          'deadline_exceeded',
          `MCP server "${server}": no reply to ${method} within ${timeoutMs} ms`,
          {
            data: { server, timeoutMs },
          },
        );
      }
      throw error instanceof RuvLLMError ? error : failed(serializeError(error).message, error);
    } finally {
      pending.delete(id);
      cancelTimer();
      abortion.unlink();
    }
  }

  async function initialize(): Promise<void> {
    const timeoutMs = options.openTimeoutMs ?? MCP_LIMITS.openTimeoutMs;
    const params = {
      protocolVersion: PROTOCOL_VERSIONS[0],
      capabilities: {},
      clientInfo: { name: 'ruvllm', version: options.version },
    };
    const { result } = await request('initialize', params, { signal: options.signal, timeoutMs });
    const { protocolVersion } = result;
    const version = PROTOCOL_VERSIONS.find((known) => known === protocolVersion);
    if (version === undefined) {
      throw failed(
        `it chose the protocol version ${showValue(protocolVersion)}; known are ${PROTOCOL_VERSIONS.join(', ')}`,
      );
    }
    transport.useVersion?.(version);
    await notify('notifications/initialized').catch((error: unknown) => {
      throw failed('it does not take the message after its initialization', error);
    });
  }

  async function readList(signal: AbortSignal): Promise<ToolListing> {
    const { maxTools, maxPages, maxListBytes, listTimeoutMs } = MCP_LIMITS;
    const startMs = clock.now();
    const tools = new Map<string, McpTool>();
    const unusable: UnusableTool[] = [];
    const cursors = new Set<string>();
    let cursor: string | null = null;
    let numListBytes = 0;
    for (let numPages = 1; ; numPages++) {
      const timeoutMs = Math.max(1, startMs + listTimeoutMs - clock.now());
      const page = await request('tools/list', cursor === null ? {} : { cursor }, { signal, timeoutMs });
      numListBytes += page.numBytes;
      if (numListBytes > maxListBytes)
        throw exceeded(
          `: its list of tools has ${numListBytes} bytes or more; the limit is ${maxListBytes}`,
          maxListBytes,
        );
      const { tools: listed, nextCursor: next } = page.result;
      if (!Array.isArray(listed)) throw failed('its list of tools is no list');
      for (const value of listed as unknown[]) {
        const tool = readTool(value);
        if ('reason' in tool) unusable.push(tool);
        else if (tools.has(tool.name)) unusable.push({ name: tool.name, reason: 'a second tool of the same name' });
        else tools.set(tool.name, tool);
        if (tools.size + unusable.length > maxTools) throw exceeded(` lists more than ${maxTools} tools`, maxTools);
      }
      if (typeof next !== 'string' || next === '') return { tools: [...tools.values()], unusable };
      if (numPages >= maxPages || cursors.has(next)) {
        const where = cursors.has(next) ? ', which begins again' : '';
        throw exceeded(
          `: its list of tools does not end after ${numPages} pages${where}; the limit is ${maxPages}`,
          maxPages,
        );
      }
      cursors.add((cursor = next));
    }
  }

  async function close(): Promise<void> {
    end(failed('the connection is closed'));
    await transport.close();
  }

  try {
    await transport.open({ onMessage: receive, onExcess: receiveExcess, onClose: end });
    await initialize();
  } catch (error) {
    await close();
    throw error;
  }

  return {
    isOpen: () => closed === null,
    async listTools(signal) {
      if (listing !== null) return listing;
      const read = await readList(signal);
      if (closed === null) listing = read;
      return read;
    },
    async callTool(name, args, { signal, timeoutMs, maxResultBytes }) {
      const { result } = await request('tools/call', { name, arguments: args }, { signal, timeoutMs });
      return readToolResult(result, maxResultBytes);
    },
    close,
  };
}
