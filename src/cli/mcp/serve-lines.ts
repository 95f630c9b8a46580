import { Buffer } from 'node:buffer';
import { failureOf, idOf, type JsonRpcFailure, type JsonRpcResult, RPC_CODES } from '../../mcp/json-rpc.ts';
import { MCP_LIMITS } from '../../mcp/limits.ts';
import { createLineSplitter } from '../../mcp/line-splitter.ts';
import { parseMessage } from '../../mcp/parse-message.ts';
import type { McpServer } from '../../mcp/server.ts';
import type { CliIo, TextInput } from '../io.ts';

/** Answers the messages of a client, one per line, until its input ends or a signal comes; requests run side by side. */
export async function serveLines(
  io: Pick<CliIo, 'stdin' | 'stdout' | 'signal' | 'acceptSignal'>,
  server: McpServer,
): Promise<void> {
  const { stdin, stdout, signal } = io;
  const { maxMessageBytes, maxOpenRequests } = MCP_LIMITS;
  const open = new Set<Promise<void>>();
  const lines = createLineSplitter();

  async function answer(line: Uint8Array | null): Promise<JsonRpcResult | JsonRpcFailure | null> {
    if (line === null) return invalid(null, `a message of more than ${maxMessageBytes} bytes`);
    const message = parseMessage(line);
    if (message.kind === 'no JSON') return failureOf(null, RPC_CODES.parse, 'not valid JSON');
    if (message.kind === 'excess') return invalid(message.id, message.what);
    const id = idOf(message.value);
    if (open.size >= maxOpenRequests && id !== null)
      return failureOf(id, RPC_CODES.busy, `${open.size} requests are in progress; the limit is ${maxOpenRequests}`);
    return server.handle(message.value, signal);
  }

  function receive(line: Uint8Array | null): void {
    const work = answer(line)
      .then((reply) => (reply === null ? undefined : stdout.write(`${JSON.stringify(reply)}\n`)))
      .catch(() => stdout.write(`${JSON.stringify(failureOf(null, RPC_CODES.internal, 'internal error'))}\n`))
      .finally(() => open.delete(work));
    open.add(work);
  }

  const stop = (): void => void (stdin as TextInput & { destroy?: () => void }).destroy?.();
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of stdin)
      for (const line of lines.push(Buffer.from(chunk as string | Uint8Array))) receive(line);
    for (const line of lines.end()) receive(line);
  } catch (error) {
    if (!signal.aborted) throw error;
    io.acceptSignal?.(); // how clients end their servers
  } finally {
    signal.removeEventListener('abort', stop);
  }
  await Promise.allSettled(open);
}

const invalid = (id: JsonRpcFailure['id'], what: string): JsonRpcFailure =>
  failureOf(id, RPC_CODES.invalidRequest, `${what} is not read`);
