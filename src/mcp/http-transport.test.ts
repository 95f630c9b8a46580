import { describe, expect, test } from 'vitest';
import { systemClock } from '../core/clock.ts';
import type { RuvLLMError } from '../core/errors.ts';
import { openMcpClient } from './client.ts';
import { createMcpHttp, type McpFetch } from './http-transport.ts';
import { createMcpServerPool } from './server-pool.ts';

const never = new AbortController().signal;
type Reply = (message: { id?: number; method: string; params?: any }, url: string) => Response;
const json = (value: object, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify({ jsonrpc: '2.0', ...value }), {
    headers: { 'content-type': 'application/json', ...headers },
  });
const stream = (text: string): Response => new Response(text, { headers: { 'content-type': 'text/event-stream' } });
const event = (value: object): string =>
  `event: message\nid: 1\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...value })}\n\n`;
const RESULT = { content: [{ type: 'text', text: 'done' }] };

/** A server whose replies to other messages than `initialize` are `reply`. */
function createServer(reply: Reply) {
  const requests: { url: string; method: string; headers: Headers; body: any }[] = [];
  const fetch: McpFetch = async (url, { method, headers, body }) => {
    const message = body === undefined ? null : (JSON.parse(body) as { id?: number; method: string; params: any });
    requests.push({ url, method, headers: new Headers(headers), body: message });
    if (message === null) return new Response(null, { status: 204 });
    if (message.method === 'initialize') {
      return json(
        { id: message.id, result: { protocolVersion: message.params.protocolVersion } },
        { 'mcp-session-id': 's1' },
      );
    }
    if (message.id === undefined) return new Response(null, { status: 202 });
    return reply(message, url);
  };
  const url = 'https://mcp.example/mcp';
  const transport = () => createMcpHttp({ server: 'web', url, headers: { authorization: 'Bearer t' }, fetch });
  const open = () => openMcpClient(transport(), { server: 'web', clock: systemClock, version: '0', signal: never });
  return { requests, fetch, open, transport };
}
const limits = { signal: never, timeoutMs: 10_000, maxResultBytes: 1000 };
const failure = (work: Promise<unknown>): Promise<RuvLLMError> =>
  work.then(
    () => expect.unreachable('must fail') as never,
    (error: unknown) => error as RuvLLMError,
  );

describe('an MCP server over HTTP', () => {
  test('gets its session, version and headers with each message', async () => {
    const { open, requests } = createServer(({ id }) => json({ id, result: RESULT }));
    const client = await open();
    expect((await client.callTool('x', { a: 1 }, limits)).text).toBe('done');
    await client.close();
    expect(requests.map(({ method, body }) => [method, body?.method])).toEqual([
      ['POST', 'initialize'],
      ['POST', 'notifications/initialized'],
      ['POST', 'tools/call'],
      ['DELETE', undefined],
    ]);
    const { headers, body } = requests[2]!;
    expect(Object.fromEntries(headers)).toMatchObject({
      authorization: 'Bearer t',
      'mcp-session-id': 's1',
      'mcp-protocol-version': '2025-11-25',
      accept: 'application/json, text/event-stream',
    });
    expect(body.params).toEqual({ name: 'x', arguments: { a: 1 } });
  });

  test('may answer as a stream, with other messages before, and leave it open', async () => {
    const { open } = createServer(({ id }) => {
      const text = `: hi\n\n${event({ method: 'notifications/progress', params: {} })}${event({ id, result: RESULT })}`;
      const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(text)) });
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    });
    expect((await (await open()).callTool('x', {}, limits)).text).toBe('done');
  });

  test.each<[string, Reply, RegExp]>([
    ['ends its stream without a reply', () => stream(': nothing\n\n'), /ended without a reply/],
    ['sends HTML', () => new Response('<html>', { headers: { 'content-type': 'text/html' } }), /type "text\/html"/],
    ['sends no JSON', () => new Response('{', { headers: { 'content-type': 'application/json' } }), /not valid JSON/],
    ['wants credentials', () => new Response('', { status: 401 }), /status 401; set its credentials in headers/],
    ['fails', () => new Response('', { status: 500 }), /status 500/],
    ['floods', () => stream(`data: ${'x'.repeat(9 << 20)}`), /more than 8388608 characters/],
    [
      'asks for ever',
      ({ id }) => stream(event({ id: id! + 1, method: 'x' }).repeat(3000)),
      /sent 2001 messages before its reply/,
    ],
    [
      'nests its reply',
      ({ id }) =>
        new Response(`{"id":${id},"result":${'['.repeat(600)}`, { headers: { 'content-type': 'application/json' } }),
      /nested deeper than 512 levels/,
    ],
    ['sends too much', () => new Response('x'.repeat(9 << 20)), /more than 8388608 bytes/],
  ])('that %s fails the call with a typed error', async (_name, reply, message) => {
    const error = await failure((await createServer(reply).open()).callTool('x', {}, limits));
    expect(error.code).toBe('tool_failed');
    expect(error.message).toMatch(message);
  });

  test('that asks in the response to an answer is not heard: it could go on for ever', async () => {
    let numAsked = 0;
    const { open, requests } = createServer(({ id, method }) => {
      if (method === undefined) return stream(++numAsked < 50 ? event({ id: numAsked, method: 'ping' }) : '');
      return stream(event({ id: 'a', method: 'ping' }) + event({ id, result: RESULT }));
    });
    const client = await open();
    await client.callTool('x', {}, limits);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(requests.filter(({ body }) => body.method === undefined).map(({ body }) => body.id)).toEqual(['a']);
  });

  test.each([
    ['http://127.0.0.1/mcp', /refused a redirect to http:\/\/127.0.0.1;/],
    ['http://169.254.169.254/latest', /refused a redirect to http:\/\/169.254.169.254;/],
    ['https://other.example/mcp', /refused a redirect to https:\/\/other.example;/],
    ['http://mcp.example/mcp', /refused a redirect to http:\/\/mcp.example;/],
    ['http://[', /refused a redirect to an invalid address/],
  ])('that redirects to %s is refused, and no other host hears of it', async (location, message) => {
    const { open, requests } = createServer(() => new Response(null, { status: 307, headers: { location } }));
    const error = await failure((await open()).callTool('x', {}, limits));
    expect(error.message).toMatch(message);
    expect(new Set(requests.map(({ url }) => url))).toEqual(new Set(['https://mcp.example/mcp']));
  });

  test('may redirect within its origin a few times, but not to a GET and not forever', async () => {
    const moved = createServer(({ id }, url) =>
      url.endsWith('/mcp/')
        ? json({ id, result: RESULT })
        : new Response(null, { status: 308, headers: { location: '/mcp/' } }),
    );
    expect((await (await moved.open()).callTool('x', {}, limits)).text).toBe('done');
    const seen = createServer(() => new Response(null, { status: 302, headers: { location: '/mcp/' } }));
    expect((await failure((await seen.open()).callTool('x', {}, limits))).message).toMatch(/status 302, which drops/);
    const circle = createServer(() => new Response(null, { status: 307, headers: { location: '/mcp' } }));
    expect((await failure((await circle.open()).callTool('x', {}, limits))).message).toMatch(/more than 3 redirects/);
  });

  test('whose session ended is initialized again, and the call is repeated once', async () => {
    let numCalls = 0;
    const { transport, requests } = createServer(({ id, method }) => {
      if (method === 'tools/list') return json({ id, result: { tools: [{ name: 'x', annotations: { readOnlyHint: true } }] } }); // prettier-ignore
      return ++numCalls === 1 ? new Response('', { status: 404 }) : json({ id, result: RESULT });
    });
    const endpoint = { kind: 'http' as const, url: '', headers: {} };
    const config = { name: 'web', endpoint, consent: { server: null, tools: new Map() }, timeoutMs: 1000, maxResultBytes: 100, maxAgeMs: 0, tenants: null }; // prettier-ignore
    const pool = createMcpServerPool([config], { connect: transport, clock: systemClock, version: '0' });
    const { tools } = await pool.offer('web', never);
    expect((await tools[0]!.call({}, never)).text).toBe('done');
    expect(requests.filter(({ body }) => body?.method === 'initialize')).toHaveLength(2);
    await pool.close();
    expect((await failure(pool.offer('web', never))).message).toMatch(/closed/);
    expect((await failure(pool.offer('wbe', never))).message).toMatch(/no MCP server "wbe" \(did you mean web\?\)/);
  });
});
