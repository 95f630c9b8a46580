// Servers whose messages are valid JSON-RPC and hostile.
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { campaign } from '../../test/support/campaign.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import type { RuvLLMError } from '../core/errors.ts';
import { openMcpClient } from './client.ts';
import { readToolResult } from './tool-result.ts';
import type { McpTransport, TransportEvents } from './transport.ts';

const never = new AbortController().signal;
const limits = { signal: never, timeoutMs: 1000, maxResultBytes: 100 };

interface Asked {
  readonly id: number;
  readonly method: string;
  readonly params: { readonly cursor?: string };
}

/** A client of a server that answers with these values, of as many bytes as they have as JSON. */
async function open(
  answer: (asked: Asked, send: (value: unknown, numBytes?: number) => void, events: TransportEvents) => void,
) {
  let events: TransportEvents;
  const sent: any[] = [];
  const send = (value: unknown, numBytes = JSON.stringify(value)?.length ?? 0): void =>
    events.onMessage(value, numBytes);
  const transport: McpTransport = {
    async open(given) {
      events = given;
    },
    async send(message) {
      sent.push(message);
      if (!('method' in message) || !('id' in message)) return;
      const { id, method, params = {} } = message as unknown as Asked;
      if (method === 'initialize') send({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25' } });
      else answer({ id, method, params }, send, events);
    },
    async close() {},
  };
  const clock = createManualClock();
  const client = await openMcpClient(transport, { server: 's', clock, version: '0', signal: never });
  return { client, sent, send, advance: clock.advance };
}

const failure = (work: Promise<unknown>): Promise<RuvLLMError> =>
  work.then(
    () => expect.unreachable('must fail') as never,
    (error: unknown) => error as RuvLLMError,
  );
const page = (id: number, tools: unknown, nextCursor?: unknown): object => ({
  jsonrpc: '2.0',
  id,
  result: { tools, nextCursor },
});

test('[MT5] a server that does not take a message cannot keep us waiting', async () => {
  const clock = createManualClock();
  let events: TransportEvents;
  const transport: McpTransport = {
    async open(given) {
      events = given;
    },
    async send(message) {
      const result = { protocolVersion: '2025-11-25' };
      if ('id' in message) events.onMessage({ jsonrpc: '2.0', id: message.id, result }, 1);
      else await new Promise(() => setImmediate(() => clock.advance(10_000)));
    },
    async close() {},
  };
  const error = await failure(openMcpClient(transport, { server: 's', clock, version: '0', signal: never }));
  expect(error).toMatchObject({
    code: 'tool_failed',
    message: expect.stringMatching(/does not take the message/) as string,
  });
});

describe('[MT5] a list of tools', () => {
  test('of more bytes than the limit on all pages is refused', async () => {
    const { client } = await open(({ id, params }, send) =>
      send(page(id, [{ name: `t${params.cursor}`, description: 'x'.repeat(300_000) }], `${params.cursor ?? ''}x`)),
    );
    const error = await failure(client.listTools(never));
    expect(error).toMatchObject({ code: 'limit_exceeded', data: { server: 's', limit: 2_097_152 } });
    expect(error.message).toMatch(
      /^MCP server "s": its list of tools has 210\d{4} bytes or more; the limit is 2097152$/,
    );
  });

  test.each([
    ['one after another', (cursor = '') => `${cursor}x`, /does not end after 100 pages; the limit is 100/],
    ['in a circle of two', (cursor = 'b') => (cursor === 'a' ? 'b' : 'a'), /after 3 pages, which begins again/],
    ['of one cursor', () => 'a', /after 2 pages, which begins again/],
  ])('has pages without an end, %s', async (_name, next, message) => {
    const { client } = await open(({ id, params }, send) => send(page(id, [], next(params.cursor))));
    expect((await failure(client.listTools(never))).message).toMatch(message);
  });

  test('must arrive within one time limit, however many pages it has', async () => {
    const { client, advance } = await open(({ id, params }, send) => {
      setImmediate(() => {
        advance(12_000);
        send(page(id, [], `${params.cursor ?? ''}x`));
      });
    });
    expect(await failure(client.listTools(never))).toMatchObject({ code: 'deadline_exceeded' });
  });

  test('is forgotten when the connection ends', async () => {
    let numListed = 0;
    const { client } = await open(({ id }, send) => send(page(id, [{ name: `t${++numListed}` }])));
    await client.listTools(never);
    await client.listTools(never);
    expect(numListed).toBe(1);
    await client.close();
    expect((await failure(client.listTools(never))).message).toMatch(/the connection is closed/);
  });
});

test('[MT5] a message beyond the limits fails its call, and without an id the connection', async () => {
  const { client } = await open(({ id, params }, _send, events) =>
    events.onExcess((params as { name?: string }).name === 'last' ? null : id, 'a message of 9 levels', 8),
  );
  expect(await failure(client.callTool('x', {}, limits))).toMatchObject({
    code: 'tool_failed',
    message: 'MCP server "s": it sent a message of 9 levels',
    data: { server: 's', limit: 8 },
  });
  expect(client.isOpen()).toBe(true);
  expect((await failure(client.callTool('last', {}, limits))).message).toMatch(/a message of 9 levels/);
  expect(client.isOpen()).toBe(false);
});

test('[MT5] a result that was cut off does not keep the whole of it in memory', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  const read = (index: number): unknown => {
    const text = JSON.stringify({ content: [{ type: 'text', text: `${index}`.repeat(2 ** 21) }] });
    return readToolResult(JSON.parse(text) as Record<string, unknown>, 1000);
  };
  const kept = [read(0)];
  collect();
  const before = getHeapStatistics().used_heap_size;
  for (let index = 1; index < 10; index++) kept.push(read(index));
  collect();
  expect(getHeapStatistics().used_heap_size - before).toBeLessThan(2 ** 21);
  expect(kept).toHaveLength(10);
});

test('[MT5] requests of the server are answered, but not more than 64 at once', async () => {
  const { client, send, sent } = await open(({ id }, answer) => answer({ jsonrpc: '2.0', id, result: {} }));
  const before = sent.length;
  for (let id = 0; id < 1000; id++) send({ jsonrpc: '2.0', id, method: 'ping' });
  expect(sent.length - before).toBe(64);
  await client.callTool('x', {}, limits);
  send({ jsonrpc: '2.0', id: 1, method: 'ping' });
  expect(sent.at(-1)).toMatchObject({ id: 1, result: {} });
});

const foreign = fc.oneof(
  { depthSize: 'small' },
  fc.jsonValue(),
  fc.constantFrom<unknown>(
    { toString: 1, valueOf: 1 },
    [[{ toString: null }]],
    JSON.parse('{"__proto__":[]}'),
    'x'.repeat(5000),
  ),
);
const part = fc.record(
  {
    type: fc.constantFrom('text', 'image', 'audio', 'resource', 'resource_link', '?'),
    text: foreign,
    mimeType: foreign,
    data: foreign,
    resource: foreign,
    uri: foreign,
    name: foreign,
  },
  { requiredKeys: [] },
);
const tool = fc.record(
  {
    name: fc.oneof(fc.string({ maxLength: 4 }), foreign),
    description: foreign,
    inputSchema: foreign,
    annotations: foreign,
  },
  { requiredKeys: [] },
);
const results = fc.record(
  {
    content: fc.oneof(fc.array(fc.oneof(part, foreign)), foreign),
    structuredContent: foreign,
    isError: foreign,
    tools: fc.oneof(fc.array(fc.oneof(tool, foreign)), foreign),
  },
  { requiredKeys: [] },
);
const replies = fc.oneof(
  fc.record({ result: results }),
  fc.record({ result: foreign }),
  fc.record({ error: fc.oneof(fc.record({ code: foreign, message: foreign }, { requiredKeys: [] }), foreign) }),
  fc.record({ method: foreign, params: foreign }, { requiredKeys: [] }),
);

test('[MT5] every answer becomes a result, a list or a typed error', async () => {
  await fc.assert(
    fc.asyncProperty(replies, foreign, async (reply, noise) => {
      const { client } = await open(({ id }, send) => {
        send(noise);
        send({ jsonrpc: '2.0', id, ...reply });
        send({ jsonrpc: '2.0', id, result: {} });
      });
      const called = await client.callTool('x', {}, limits).catch((error: RuvLLMError) => error);
      if ('code' in called)
        expect([called.name, called.code, called.message.length < 5000]).toEqual(['RuvLLMError', 'tool_failed', true]);
      else expect(called.text.length).toBeLessThan(200);
      if ('code' in called) expect(called.message).not.toMatch(/primitive|toString is not|call stack/);
      const listed = await client.listTools(never).catch((error: RuvLLMError) => error);
      if ('code' in listed) expect([listed.name, listed.code]).toEqual(['RuvLLMError', 'tool_failed']);
      else
        for (const { name, description } of listed.tools)
          expect([name, description].join('').length).toBeLessThan(4300);
    }),
    { numRuns: campaign({ short: 300, long: 30_000 }) },
  );
});
