import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { campaign } from '../../test/support/campaign.ts';
import { RuvLLMError } from '../core/errors.ts';
import { createMcpServer, type ServedTool } from './server.ts';

const never = new AbortController().signal;

function setUp(call: ServedTool['call']) {
  const reported: unknown[] = [];
  const tool: ServedTool = { name: 'x', description: 'X.', inputSchema: { type: 'object' }, isReadOnly: true, call };
  const info = { version: '0', instructions: '', report: (error: unknown) => void reported.push(error) };
  const server = createMcpServer([tool], info);
  const send = (message: object, signal = never): Promise<any> => server.handle({ jsonrpc: '2.0', ...message }, signal);
  const start = (signal?: AbortSignal): Promise<any> => send({ id: 1, method: 'tools/call', params: { name: 'x' } }, signal); // prettier-ignore
  return { server, send, start, reported };
}

test('shows typed errors, and reports bugs without showing them', async () => {
  const typed = setUp(() => Promise.reject(new RuvLLMError('not_found', 'there is no record 7')));
  expect((await typed.start()).result).toMatchObject({ isError: true, content: [{ text: 'not_found: there is no record 7' }] }); // prettier-ignore
  expect(typed.reported).toEqual([]);
  const bug = new TypeError('/home/secret/file.ts is undefined');
  const broken = setUp(() => Promise.reject(bug));
  const { result } = await broken.start();
  expect(result.isError).toBe(true);
  expect(JSON.stringify(result)).not.toContain('secret');
  expect(broken.reported).toEqual([bug]);
});

test.each(['a notification', 'the connection'])('%s cancels a call', async (how) => {
  const connection = new AbortController();
  const { send, start } = setUp(
    (_args, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new RuvLLMError('aborted', 'cancelled')));
      }),
  );
  const reply = start(connection.signal);
  if (how === 'the connection') connection.abort();
  else expect(await send({ method: 'notifications/cancelled', params: { requestId: 1 } })).toBeNull();
  expect((await reply).result).toMatchObject({ isError: true, content: [{ text: 'aborted: cancelled' }] });
});

const hostileJson = fc.oneof(
  { depthSize: 'small' },
  fc.jsonValue(),
  fc.constantFrom<unknown>(
    { toString: 1, valueOf: 1 },
    [{ toString: null }],
    JSON.parse('{"__proto__":{"a":1}}'),
    -0,
    1e308,
    2 ** 53,
    'x'.repeat(9000),
  ),
);
const methods = fc.constantFrom(
  'initialize',
  'ping',
  'tools/list',
  'tools/call',
  'notifications/cancelled',
  'constructor',
);
const messages = fc.oneof(
  hostileJson,
  fc.record(
    {
      jsonrpc: fc.oneof({ weight: 9, arbitrary: fc.constant('2.0') }, { weight: 1, arbitrary: hostileJson }),
      id: fc.oneof(fc.integer(), hostileJson),
      method: fc.oneof({ weight: 4, arbitrary: methods }, { weight: 1, arbitrary: hostileJson }),
      params: fc.oneof(
        hostileJson,
        fc.record(
          { name: fc.oneof(fc.constant('x'), hostileJson), arguments: hostileJson, requestId: hostileJson },
          { requiredKeys: [] },
        ),
      ),
      result: hostileJson,
      error: fc.oneof(hostileJson, fc.record({ code: hostileJson, message: hostileJson }, { requiredKeys: [] })),
    },
    { requiredKeys: [] },
  ),
);

test('[MT6] answers every message with a short reply, or with none', async () => {
  const { server, send, reported } = setUp(async () => 'done');
  const numRuns = campaign({ short: 500, long: 50_000 });
  await fc.assert(
    fc.asyncProperty(messages, async (message) => {
      const reply = await server.handle(message, never);
      if (reply === null) return;
      expect(reply.jsonrpc).toBe('2.0');
      expect(reply.id === null || typeof reply.id === 'string' || Number.isSafeInteger(reply.id)).toBe(true);
      expect(JSON.stringify(reply).length).toBeLessThan(3000);
    }),
    { numRuns },
  );
  expect(await send({ id: 1, method: 'ping' })).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
  expect(reported).toEqual([]);
});

test.each<[unknown, RegExp]>([
  [[], /it is a list of 0 items; batches/],
  [{ id: 1, method: 'ping' }, /jsonrpc is undefined/],
  [{ jsonrpc: '2.0', id: {}, method: 'ping' }, /text of at most 256 characters, it is an object/],
  [{ jsonrpc: '2.0', id: 1, method: { toString: 1 } }, /method is an object, \{"toString":1\}/],
  [{ jsonrpc: '2.0', id: 1, method: 'ping', params: [1] }, /params must be an object, it is a list of 1 items/],
])('%# says what is wrong with a message', async (message, reason) => {
  const { server } = setUp(async () => 'done');
  expect(await server.handle(message, never)).toMatchObject({
    error: { code: -32600, message: expect.stringMatching(reason) as string },
  });
});

test.each([{ toString: 1, valueOf: 1 }, JSON.parse('['.repeat(60_000) + ']'.repeat(60_000)) as unknown])(
  'a tool of the name %# does not exist',
  async (name) => {
    const { error } = await setUp(async () => 'done').send({ id: 1, method: 'tools/call', params: { name } });
    expect(error).toMatchObject({
      code: -32602,
      message: expect.stringMatching(/^there is no tool an? (?:object|list)/) as string,
    });
  },
);

test('a bug in an answer is reported, and the reply does not show it', async () => {
  const { server, reported } = setUp(async () => 'done');
  const params = new Proxy(
    {},
    {
      get() {
        throw new TypeError('secret');
      },
    },
  );
  const reply = await server.handle({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, never);
  expect(reply).toEqual({
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32603, message: expect.stringMatching(/^internal error;/) as string },
  });
  expect(reported).toHaveLength(1);
});

test('two requests with one id at once: the second is refused', async () => {
  let end = (): void => {};
  const { start } = setUp(() => new Promise((resolve) => (end = () => resolve('done'))));
  const first = start();
  expect((await start()).error).toEqual({ code: -32600, message: 'a request with the id 1 is in progress' });
  end();
  expect((await first).result.isError).toBe(false);
  const next = start();
  end();
  expect((await next).result.isError).toBe(false);
});
