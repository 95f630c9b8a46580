import { expect, test } from 'vitest';
import { createFakeIo } from '../../../test/support/cli-io.ts';
import { createMcpServer, type ServedTool } from '../../mcp/server.ts';
import type { McpServer } from '../../mcp/server.ts';
import { serveLines } from './serve-lines.ts';

function setUp(call: ServedTool['call'] = async () => 'done') {
  const tool: ServedTool = { name: 'x', description: 'X.', inputSchema: { type: 'object' }, isReadOnly: true, call };
  const server = createMcpServer([tool], { version: '0', instructions: '', report: () => {} });
  const io = createFakeIo();
  const replies = (): any[] =>
    io.written.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
  const ask = async (input: string | Uint8Array, served: McpServer = server): Promise<any[]> => {
    io.stdin.end(input);
    await serveLines(io, served);
    return replies();
  };
  return { io, server, ask, replies };
}
const message = (id: unknown, method: string, params: object = {}): string =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);

test.each<[string, string | Uint8Array, number | null, unknown]>([
  ['a name that is no text', message(1, 'tools/call', { name: { toString: 1, valueOf: 1 } }), -32602, 1],
  ['an error that is no text', '{"jsonrpc":"2.0","id":1,"error":{"message":{"toString":1,"valueOf":1}}}\n', null, null],
  [
    'lists 60,000 deep',
    `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":${nested(60_000)}}}\n`,
    -32600,
    3,
  ],
  ['only brackets', `${'['.repeat(60_000)}\n`, -32600, null],
  ['a line of nine megabytes', `"${'x'.repeat(9 << 20)}"\n`, -32600, null],
  ['bytes that are no UTF-8', Uint8Array.of(0x22, 0xff, 0x22, 0x0a), -32700, null],
  ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', -32600, null],
  ['an id that is an object', message({ toString: 1 }, 'ping'), -32600, null],
  ['an enormous id', message('x'.repeat(100_000), 'ping'), -32600, null],
])('[MT6] %s is answered, and the next message too', async (_name, line, code, id) => {
  const replies = await setUp().ask(Buffer.concat([Buffer.from(line), Buffer.from(message(9, 'ping'))]));
  const expected = code === null ? [] : [[id, code]];
  const answered = replies.map((reply) => [reply.id, reply.error?.code]);
  expect(new Set(answered.map(String))).toEqual(new Set([...expected, [9, undefined]].map(String)));
});

test('a message without a line break at the end is answered', async () => {
  expect(await setUp().ask(message(1, 'ping').trim())).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
});

test('a server that rejects ends nothing', async () => {
  const { ask } = setUp();
  const broken: McpServer = { handle: () => Promise.reject(new TypeError('a bug')) };
  expect(await ask(message(1, 'ping'), broken)).toEqual([
    { jsonrpc: '2.0', id: null, error: { code: -32603, message: 'internal error' } },
  ]);
});

test('of more than 64 calls at once the others are refused; a cancellation still comes through', async () => {
  const { ask } = setUp(
    (_args, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped'))),
  );
  const calls = Array.from({ length: 65 }, (_, id) => message(id, 'tools/call', { name: 'x' }));
  const stops = calls.map(
    (_, requestId) =>
      `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })}\n`,
  );
  const replies = await ask([...calls, ...stops].join(''));
  expect(replies).toHaveLength(65);
  expect(replies.find(({ id }) => id === 64).error).toEqual({
    code: -32000,
    message: '64 requests are in progress; the limit is 64',
  });
});

test('a signal ends it', async () => {
  const { io, server } = setUp();
  let isAccepted = false;
  const done = serveLines({ ...io, acceptSignal: () => (isAccepted = true) }, server);
  io.controller.abort('SIGTERM');
  await done;
  expect(isAccepted).toBe(true);
});
