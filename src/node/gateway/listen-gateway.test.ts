// Gateways on real sockets, in front of nodes on real sockets, with hostile clients.
import * as fc from 'fast-check';
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { connectBurst, parseAnswers, type RawAnswer, talk } from '../../../test/support/raw-http.ts';
import { createMemoryKeys, createTestServer, listenOnLoopback } from '../../../test/support/test-server.ts';
import { createGateway, type Gateway, type GatewayOptions } from '../../gateway/gateway.ts';
import { readHints } from '../../gateway/request-hints.ts';
import { createHttpUpstream } from '../../platform/node/gateway/http-upstream.ts';
import { createKeyStore, type KeyStore } from '../../server/keys/key-store.ts';
import type { Logger } from '../../server/logger.ts';
import { readOtlpOptions } from '../../server/telemetry/otlp-options.ts';
import { TIMEOUTS, type ListenOptions } from '../server/serve.ts';
import { listenGateway } from './listen-gateway.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

interface FakeNode {
  readonly url: string;
  readonly http: HttpServer;
  /** Requests besides questions for its health. */
  readonly requests: IncomingMessage[];
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const echo: Answer = (request, response) => {
  let size = 0;
  request.on('data', (part: Buffer) => (size += part.length));
  request.on('end', () => response.setHeader('content-type', 'application/json').end(JSON.stringify({ size })));
};

async function openNode(answer: Answer = echo): Promise<FakeNode> {
  const requests: IncomingMessage[] = [];
  const http = createServer((request, response) => {
    if (request.url === '/health') return void response.end('{}');
    requests.push(request);
    answer(request, response);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  ends.push(async () => {
    http.closeAllConnections();
    http.close();
  });
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, http, requests };
}

async function openGateway(
  nodes: readonly string[],
  { port = 0, timeouts, ...options }: Partial<GatewayOptions> & Partial<ListenOptions> = {},
): Promise<{ url: string; gateway: Gateway }> {
  const gateway = createGateway({
    nodes,
    upstream: createHttpUpstream(),
    keys: createKeyStore(createMemoryKeys(), () => 1000),
    isOpen: true,
    browsers: { hosts: null, corsOrigins: [] },
    random: () => 0, // the order of the list
    ...options,
    limits: { nodeWaitMs: 0, healthIntervalMs: 50, ...options.limits },
  });
  const listening = await listenGateway(gateway, { host: '127.0.0.1', port, ...(timeouts === undefined ? {} : { timeouts }) }); // prettier-ignore
  ends.push(() => listening.close(0));
  await gateway.ready();
  return { url: listening.url, gateway };
}

async function createKeys(): Promise<{ keys: KeyStore; key: string }> {
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  const { token } = await keys.create({ name: 'a', tenant: 'a', scopes: ['inference'] });
  return { keys, key: `authorization: Bearer ${token}\r\n` };
}

const head = (path: string, more = '', length = 2 ** 20): string =>
  `POST ${path} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n${more}content-length: ${length}\r\n\r\n`;
/** A client that sends these bytes and then waits. */
const ask = async (url: string, ...parts: readonly string[]): Promise<RawAnswer[]> => parseAnswers((await talk(url, parts)).text); // prettier-ignore
const errorOf = ({ status, body }: RawAnswer): [number, string] => [status, (JSON.parse(body) as { error: { code: string } }).error.code]; // prettier-ignore

/** Sockets of this process. */
const numSockets = (): number => process.getActiveResourcesInfo().filter((name) => /^TCP.*Wrap$/.test(name)).length;

async function openSocket(url: string, text: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
  await new Promise<void>((resolve) => socket.write(text, () => resolve()));
  return socket;
}

test('[GW27] a stopping gateway answers the requests whose connections the system has completed', async () => {
  const node = await openNode();
  const gateway = createGateway({
    nodes: [node.url],
    upstream: createHttpUpstream(),
    keys: createKeyStore(createMemoryKeys(), () => 1000),
    isOpen: true,
    browsers: { hosts: null, corsOrigins: [] },
  });
  const listening = await listenGateway(gateway, { host: '127.0.0.1', port: 0 });
  await gateway.ready();
  const asking = Array.from({ length: 20 }, () => `${head('/v1/completions', '', 2)}{}`);
  const { texts } = await connectBurst(listening.url, [...Array.from({ length: 200 }, () => ''), ...asking]);
  await listening.close(8000);
  expect((await texts).flatMap(parseAnswers).map(({ status }) => status)).toEqual(asking.map(() => 200));
});

describe('[GW18] before its body is read, a request', () => {
  const short = { ...TIMEOUTS, headersMs: 1000, requestMs: 3000, checkMs: 50 };

  test('is refused without a key, for an unknown route, for a route of one node, and beyond a limit', async () => {
    const node = await openNode();
    const { keys, key } = await createKeys();
    const { url, gateway } = await openGateway([node.url], { keys, isOpen: false, timeouts: short, limits: { maxRequestsPerTenant: 1, maxBodyBytes: 2 ** 20 } }); // prettier-ignore
    const codes = async (path: string, ...more: [string?, number?]) => (await ask(url, head(path, ...more))).map(errorOf); // prettier-ignore
    expect(await codes('/v1/completions')).toEqual([[401, 'missing_api_key']]);
    expect(await codes('/v1/nothing', key)).toEqual([[404, 'unknown_url']]);
    expect(await codes('/admin/models/unload', key)).toEqual([[403, 'insufficient_scope']]);
    expect(await codes('/v1/completions', key, 2 ** 20 + 1)).toEqual([[413, 'body_too_large']]);
    const busy = await openSocket(url, head('/v1/completions', key));
    await expect.poll(async () => (await codes('/v1/completions', key))[0]![1]).toBe('too_many_requests');
    busy.destroy();
    expect(node.requests).toEqual([]);
    await expect.poll(() => gateway.nodes[0]!.numRequests).toBe(0);
  });

  test('that asks whether to send its body is told so only if it will be read', async () => {
    const node = await openNode();
    const { keys, key } = await createKeys();
    const { url } = await openGateway([node.url], { keys, isOpen: false, timeouts: short });
    const expecting = 'expect: 100-continue\r\nconnection: close\r\n';
    expect((await ask(url, head('/v1/completions', expecting, 2))).map(({ status }) => status)).toEqual([401]);
    const socket = await openSocket(url, head('/v1/completions', `${key}${expecting}`, 2));
    let text = '';
    socket.on('data', (part: Buffer) => {
      text += part.toString();
      if (text.endsWith('100 Continue\r\n\r\n')) socket.write('{}');
    });
    await new Promise((resolve) => socket.once('close', resolve));
    expect(parseAnswers(text).map(({ status }) => status)).toEqual([100, 200]);
  });

  test('that grows beyond the limit is read no further, and its client can read why', async () => {
    const node = await openNode();
    const { url } = await openGateway([node.url], { limits: { maxBodyBytes: 100_000 } });
    const chunks = `10000\r\n${' '.repeat(65_536)}\r\n`;
    const chunked = 'POST /v1/messages HTTP/1.1\r\nhost: gateway\r\ntransfer-encoding: chunked\r\n\r\n';
    const { text, numWritten } = await talk(url, [chunked, ...Array<string>(3000).fill(chunks)]);
    expect(parseAnswers(text).map(({ status }) => status)).toEqual([413]);
    expect(text).toContain('"type":"error"'); // Anthropic's format
    expect(numWritten).toBeLessThan(100_000_000);
    expect(node.requests).toEqual([]);
  });
});

/** The first part that comes, and no more. */
const readOnce = (socket: Socket): Promise<unknown> =>
  new Promise((read) => socket.once('data', (part) => (socket.pause(), read(part))));

describe('[GW21] a client that leaves', () => {
  test('while it sends its body frees its place, and no node hears of it', async () => {
    const node = await openNode();
    const { url } = await openGateway([node.url], { limits: { maxRequests: 20 } });
    const before = numSockets();
    for (let round = 0; round < 3; round++) {
      const sockets = await Promise.all(Array.from({ length: 20 }, () => openSocket(url, `${head('/v1/completions')}{"half`))); // prettier-ignore
      await expect.poll(async () => (await ask(url, head('/v1/completions', 'connection: close\r\n', 2), '{}'))[0]!.status).toBe(503); // prettier-ignore
      for (const socket of sockets) socket.destroy();
      await expect.poll(async () => (await ask(url, head('/v1/completions', 'connection: close\r\n', 2), '{}'))[0]!.status).toBe(200); // prettier-ignore
    }
    expect(new Set(node.requests.map(({ headers }) => headers['content-length']))).toEqual(new Set(['2']));
    await expect.poll(numSockets).toBeLessThanOrEqual(before + 1); // the kept one to the node
  });

  test('during an answer, a stream or before both ends the request at the node, and leaves no socket', async () => {
    const open = new Set<IncomingMessage>();
    const endless: Answer = (request, response) => {
      open.add(request);
      response.on('close', () => open.delete(request));
      if (request.url === '/v1/completions') return; // no byte
      const isStream = request.url === '/v1/chat/completions';
      response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json');
      const piece = `data: ${'x'.repeat(30_000)}\n\n`;
      // More than a gateway holds, and a client that does not read.
      const write = (): void => {
        while (!response.destroyed && response.write(piece));
        response.once('drain', write);
      };
      write();
    };
    const node = await openNode(endless);
    const { url, gateway } = await openGateway([node.url]);
    const before = numSockets();
    for (const path of ['/v1/completions', '/v1/chat/completions', '/v1/embeddings']) {
      const sockets = await Promise.all(Array.from({ length: 8 }, () => openSocket(url, `${head(path, '', 2)}{}`)));
      await expect.poll(() => open.size).toBe(8);
      if (path === '/v1/chat/completions') await Promise.all(sockets.map(readOnce));
      for (const socket of sockets) socket.destroy();
      await expect.poll(() => open.size).toBe(0);
      await expect.poll(() => gateway.nodes[0]!.numRequests).toBe(0);
    }
    await expect.poll(numSockets).toBeLessThanOrEqual(before + 1);
  });
});

test('[GW22] bodies in progress are bounded: of one tenant to half, so that others are answered', async () => {
  const node = await openNode();
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  const keyOf = async (tenant: string): Promise<string> =>
    `authorization: Bearer ${(await keys.create({ name: tenant, tenant, scopes: ['inference'] })).token}\r\nconnection: close\r\n`;
  const [flood, calm, third] = [await keyOf('flood'), await keyOf('calm'), await keyOf('third')];
  const { url } = await openGateway([node.url], { keys, isOpen: false, limits: { maxHeldBytes: 2_000_000 } });
  const body = `"${'x'.repeat(599_998)}"`;
  const send = async (key: string): Promise<RawAnswer> => (await ask(url, head('/v1/completions', key, 600_000), body))[0]!; // prettier-ignore
  const holding = new Map<string, Socket>();
  /** All but the last byte of a body. One that comes while others are in progress may be the one that is refused: then it comes again. */
  const hold = async (key: string): Promise<void> => {
    if (holding.get(key)?.destroyed === false) return;
    const socket = await openSocket(url, head('/v1/completions', key, 900_000) + 'x'.repeat(899_999));
    holding.set(
      key,
      socket.once('data', () => void socket.destroy()),
    );
  };
  await expect.poll(async () => (await hold(flood), (await send(flood)).status)).toBe(503);
  const refused = await send(flood);
  expect([errorOf(refused), Number(refused.headers['retry-after'])]).toEqual([[503, 'overloaded'], 2]);
  expect(refused.body).toContain('at most 1000000 may be held');
  expect((await send(calm)).status).toBe(200);
  await expect.poll(async () => (await hold(calm), (await send(third)).body)).toContain('at most 2000000 may be held');
  for (const socket of holding.values()) socket.destroy();
  for (const key of [flood, calm, third]) await expect.poll(async () => (await send(key)).status).toBe(200);
});

test('[GW23] bodies that are nested too deeply, have too many values or are no JSON are reported by the node', async () => {
  const node = await listenOnLoopback(createTestServer([]));
  ends.push(() => node.close(0));
  const logged: string[] = [];
  const logger: Logger = { log: (level) => void logged.push(level) };
  const { url } = await openGateway([node.url], { logger });
  const list = (content: string): string => `{"model":"m","messages":[${content}]}`;
  const bodies = [
    [list('['.repeat(20_000) + ']'.repeat(20_000)), 422, 'json_too_deep'],
    [list('['.repeat(500_000) + ']'.repeat(500_000)), 422, 'json_too_deep'],
    [list(Array(1_000_000).fill('1').join(',')), 422, 'json_too_large'],
    ['['.repeat(30_000), 422, 'json_too_deep'],
    ['\u0000', 400, 'invalid_json'],
    ['null', 400, null],
  ] as const;
  for (const [body, status, code] of bodies) {
    const answers = await ask(url, head('/v1/chat/completions', 'connection: close\r\n', body.length), body);
    const [got, reason] = errorOf(answers[0]!);
    expect([body.slice(0, 40), got, code === null ? null : reason]).toEqual([body.slice(0, 40), status, code]);
  }
  expect(logged).not.toContain('error');
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
  expect(readHints(encode(list('1,'.repeat(150_000) + '1')), 'application/json').model).toBe('m');
  // Not even parsed.
  expect(readHints(encode(list('1,'.repeat(200_000) + '1')), 'application/json').model).toBeNull();
});

test('[GW18] headers beyond 16 KiB are a 431', async () => {
  const node = await openNode();
  const { url } = await openGateway([node.url]);
  const [answer] = await ask(url, head('/v1/completions', `x-a: ${'a'.repeat(20_000)}\r\n`, 2));
  expect(errorOf(answer!)).toEqual([431, 'headers_too_large']);
  expect(node.requests).toEqual([]);
});

describe('[GW19] a path', () => {
  const ODD = ['//v1/models', '/v1//models', '/v1/./models', '/v1/models/.', '/v1/x/../models', '/v1/models/..', '/v1/models/../../admin/keys', '/v1/models/x/../../../fleet/state', '/v1/responses/%2e%2e', '/v1/responses/.%2E/x', '/v1/models/..%2f..%2fadmin', '/v1/%63ompletions', '/v1/models/%6d', '/v1\\models', '/v1/models/x\\..\\..\\admin', '/v1/models/%5c', '/v1/models/%00', '/v1/models/%0a', '/v1/models/%', '/v1/models/%zz', '/v1/models#/x', 'http://gateway/v1/models', '*']; // prettier-ignore
  const get = (target: string): string => `GET ${target} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`;

  /** A real node behind a gateway; both tell which route each request had. */
  async function openBoth() {
    const routes: Record<'node' | 'gateway', unknown[]> = { node: [], gateway: [] };
    const loggerOf = (who: 'node' | 'gateway'): Logger => ({
      log(_level, event, { route, method, status }) {
        if (event === 'request' && route !== '/health') routes[who].push(method === null ? status : route);
      },
    });
    const node = await listenOnLoopback(createTestServer([], { logger: loggerOf('node') }));
    ends.push(() => node.close(0));
    const { url } = await openGateway([node.url], { logger: loggerOf('gateway'), limits: { requestsPerMinute: 1e6, burst: 1e6 } }); // prettier-ignore
    return { node: node.url, gateway: url, routes };
  }

  test('has one spelling: any other is a 400 at the gateway and at the node', async () => {
    const both = await openBoth();
    for (const target of ODD) {
      const [atGateway, atNode] = await Promise.all([ask(both.gateway, get(target)), ask(both.node, get(target))]);
      expect([target, ...atGateway.map(errorOf)]).toEqual([target, [400, 'malformed_path']]);
      expect([target, atNode[0]?.status]).toEqual([target, 400]);
    }
    const escaped = await ask(both.gateway, get('/v1/models/Org%2FName%3Astyle%20x?a=//../%2e'));
    expect(escaped.map(errorOf)).toEqual([[404, 'model_not_found']]);
  });

  test('has the same route at both, whatever is in it', async () => {
    const both = await openBoth();
    const part = fc.constantFrom('v1', 'models', 'responses', 'admin', 'keys', 'fleet', 'state', 'x', '.', '..', '', '%2e', '%2f', '%2F', '%5c', '\\', '%6d', '%25', '%20', ':', '@', ';', '#', '%c3%a4', 'V1', '%2561'); // prettier-ignore
    const path = fc.array(fc.tuple(fc.constantFrom('/', '/', '/', '%2f', '', '//'), part), {
      minLength: 1,
      maxLength: 6,
    });
    const target = fc.tuple(fc.constantFrom('', '/v1/models/', '/v1/responses/', '/admin/'), path);
    await fc.assert(
      fc.asyncProperty(target, async ([start, parts]) => {
        const text = `${start}${parts.flat().join('')}`;
        if (text === '' || text === '/') return; // a node has a page there
        both.routes.gateway.length = both.routes.node.length = 0;
        const [through] = await ask(both.gateway, get(text));
        const [byGateway] = both.routes.gateway;
        const passed = [...both.routes.node];
        await ask(both.node, get(text));
        const direct = both.routes.node.at(-1);
        if (through!.status === 400) expect([text, passed, direct]).toEqual([text, [], 400]);
        else expect([text, byGateway]).toEqual([text, direct]);
        for (const route of passed) expect([text, route]).toEqual([text, byGateway]);
      }),
      { numRuns: 300 },
    );
  });
});

describe('[GW20] a circle of gateways', () => {
  /** A port that is free now. */
  async function findPort(): Promise<number> {
    const { http, url } = await openNode();
    await new Promise((resolve) => http.close(resolve));
    return Number(new URL(url).port);
  }
  const complete = (url: string): Promise<Response> =>
    fetch(`${url}/v1/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
  const until = (url: string, status: number): Promise<void> => expect.poll(async () => (await fetch(`${url}/health`)).status).toBe(status); // prettier-ignore

  test('has no nodes in it: two gateways that list each other use the real node, and are unhealthy without it', async () => {
    const [one, two] = [await findPort(), await findPort()];
    const node = await openNode();
    const urls = [`http://127.0.0.1:${one}`, `http://127.0.0.1:${two}`];
    const all = [...urls, node.url];
    const gateways = [await openGateway(all, { port: one }), await openGateway(all, { port: two })];
    await expect.poll(() => gateways.flatMap(({ gateway }) => gateway.nodes.map(({ health }) => health))).toEqual(['refused', 'refused', 'up', 'refused', 'refused', 'up']); // prettier-ignore
    expect(gateways[0]!.gateway.nodes[0]!.reason).toContain('it is a gateway');
    for (const url of urls) expect((await complete(url)).status).toBe(200);
    expect(node.requests).toHaveLength(2);
    node.http.closeAllConnections();
    node.http.close();
    for (const url of urls) await until(url, 503);
    for (const url of urls) expect((await complete(url)).status).toBe(503);
  });

  test('ends where it began, if something between hides it from the health check', async () => {
    let hops = 0;
    // Answers for its health itself, and sends everything else to a gateway.
    let target = '';
    const proxy = await openNode(async ({ headers }, response) => {
      hops++;
      const sent = await fetch(`${target}/v1/completions`, { method: 'POST', headers: { 'content-type': 'application/json', via: headers.via ?? '' }, body: '{}' }); // prettier-ignore
      response.writeHead(sent.status, { 'content-type': 'application/json' }).end(await sent.text());
    });
    const { url, gateway } = await openGateway([proxy.url]);
    target = url;
    const answer = await complete(url);
    expect([answer.status, hops]).toEqual([508, 1]);
    expect(((await answer.json()) as { error: { code: string } }).error.code).toBe('gateway_loop');
    expect(gateway.nodes[0]!.numRequests).toBe(0);
    const node = await openNode();
    const { url: other } = await openGateway([proxy.url, node.url]);
    target = other;
    expect((await complete(other)).status).toBe(200);
  });
});

test('[TR8] spans of a gateway have neither words nor keys nor baggage, and invalid traces begin new ones', async () => {
  const bodies: string[] = [];
  const collector = await openNode((request, response) => {
    request.on('data', (part: Buffer) => bodies.push(part.toString()));
    request.on('end', () => response.end('{}'));
  });
  const node = await openNode();
  const { keys, key } = await createKeys();
  const otlp = readOtlpOptions(collector.url, { OTEL_METRICS_EXPORTER: 'none', OTEL_BSP_SCHEDULE_DELAY: '10' });
  const { url } = await openGateway([node.url], { keys, isOpen: false, otlp });
  const [trace, parent] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
  const traces = [`00-${trace}-${parent}-01`, `00-${trace}-${parent}-00`, `ff-${trace}-${parent}-01`, `00-${'0'.repeat(32)}-${parent}-01`, `00-${trace}-${parent}-01-extra`, '00-secret-secret-01', `00-${trace}-${parent}-01, 00-${trace}-${parent}-01`, 'secret'.repeat(1000)]; // prettier-ignore
  const body = JSON.stringify({ model: 'm', prompt: 'secret words' });
  for (const traceparent of traces) {
    const headers = `${key}traceparent: ${traceparent}\r\ntracestate: secret=${'s'.repeat(600)}\r\nbaggage: secret=${'z'.repeat(4000)}\r\nconnection: close\r\n`; // prettier-ignore
    const answers = await ask(url, head('/v1/completions?secret=1', headers, body.length), body);
    expect(answers.map(({ status }) => status)).toEqual([200]);
  }
  // All but the one that its client does not sample.
  await expect.poll(() => bodies.join().match(/"traceId":"\w+"/g)?.length).toBe(traces.length - 1);
  const ids = bodies.join().match(/"traceId":"\w+"/g)!;
  expect(ids.filter((id) => id.includes(trace))).toHaveLength(1);
  expect(new Set(ids).size).toBe(ids.length);
  expect(bodies.join()).not.toMatch(/secret|Bearer|sk-|sss|zzz/);
  // Nodes are told valid traces only.
  for (const { headers } of node.requests.filter((_, index) => index !== 1)) {
    expect(headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  }
});

test('[TR3] a collector that hangs delays neither requests nor the end of a gateway', async () => {
  const collector = await openNode(() => {});
  const node = await openNode();
  const otlp = readOtlpOptions(collector.url, { OTEL_BSP_SCHEDULE_DELAY: '1' });
  const { url } = await openGateway([node.url], { otlp });
  for (let i = 0; i < 20; i++) {
    expect((await ask(url, head('/v1/completions', 'connection: close\r\n', 2), '{}'))[0]!.status).toBe(200);
  }
  expect(collector.requests.length).toBe(1);
  await ends.pop()!(); // closes it without time for the last spans
});

test('[GW11] headers that the other side names as those of its connection, and headers of proxies, are not passed on', async () => {
  const node = await openNode((_request, response) => {
    response.writeHead(200, {
      connection: 'x-secret',
      'x-secret': '1',
      'x-ruvllm-fleet-prompt': '0;1;',
      'keep-alive': 'timeout=9',
      'x-kept': 'yes',
    });
    response.end('{}');
  });
  const { url } = await openGateway([node.url]);
  const sent = ['Connection: keep-alive, X-Hop', 'X-Hop: 1', 'Proxy-Connection: x', 'Forwarded: for=1.2.3.4', 'X-Forwarded-For: 1.2.3.4', 'X-Forwarded-Host: evil', 'X-Real-IP: 1.2.3.4', 'X-RuvLLM-Fleet-Ask: forged', 'X-Kept: yes', 'TE: trailers', 'Trailer: x', 'Upgrade: h2c']; // prettier-ignore
  const request = `GET /v1/responses/x HTTP/1.1\r\nhost: gateway\r\n${sent.join('\r\n')}\r\n\r\n`;
  const socket = await openSocket(url, request);
  const text = await new Promise<string>((resolve) => socket.once('data', (part: Buffer) => resolve(part.toString())));
  socket.destroy();
  const [answer] = parseAnswers(text);
  expect(Object.keys(answer!.headers).sort()).toEqual(['connection', 'content-length', 'date', 'keep-alive', 'x-kept', 'x-ruvllm-node']); // prettier-ignore
  expect(answer!.headers['keep-alive']).not.toBe('timeout=9');
  expect(Object.keys(node.requests[0]!.headers).sort()).toEqual(['connection', 'host', 'via', 'x-kept']);
});
