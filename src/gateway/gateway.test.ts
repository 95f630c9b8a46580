import { afterEach, describe, expect, test } from 'vitest';
import { createManualClock, settle } from '../../test/support/manual-clock.ts';
import { createMemoryBus } from '../../test/support/memory-bus.ts';
import { createMemoryKeys } from '../../test/support/test-server.ts';
import { RuvLLMError } from '../core/errors.ts';
import { deriveFleetKeys } from '../server/fleet/fleet-keys.ts';
import { createKeyStore, type KeyStore } from '../server/keys/key-store.ts';
import { createGateway, type Gateway, type GatewayOptions } from './gateway.ts';
import type { Affinity, AffinityPlan } from './affinity.ts';
import type { GatewayNode } from './node-table.ts';
import { announceNode } from './shared/membership.ts';
import { createTenantUsage } from './shared/tenant-usage.ts';
import type { GatewayResponse, Upstream, UpstreamRequest, UpstreamResponse } from './types.ts';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const lost = (isSent: boolean): RuvLLMError =>
  new RuvLLMError('remote_failed', 'the connection failed: ECONNRESET', { data: { isSent } });

async function* pieces(...parts: readonly (string | Error)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    if (part instanceof Error) throw part;
    yield encode(part);
  }
}

const answer = (status: number, body: object | string, type = 'application/json'): UpstreamResponse => ({
  status,
  headers: { 'content-type': type },
  body: pieces(typeof body === 'string' ? body : JSON.stringify(body)),
});
const stream = (...parts: readonly (string | Error)[]): UpstreamResponse => ({
  status: 200,
  headers: { 'content-type': 'text/event-stream; charset=utf-8' },
  body: pieces(...parts),
});

type Answer = (request: UpstreamRequest) => UpstreamResponse | Promise<UpstreamResponse>;

/** Nodes by address; each is up unless it answers `/health` itself. */
function fakeNodes(nodes: Record<string, Answer>): Upstream & { sent: Record<string, UpstreamRequest[]> } {
  const sent: Record<string, UpstreamRequest[]> = {};
  return {
    sent,
    async send(url, request) {
      request.signal.throwIfAborted();
      if (request.target === '/health') return answer(200, { status: 'ok' });
      (sent[url] ??= []).push(request);
      return nodes[url]!(request);
    },
    close() {},
  };
}

const open: Gateway[] = [];
afterEach(async () => {
  for (const gateway of open.splice(0)) await gateway.shutDown(0);
});

async function start(nodes: Record<string, Answer>, options: Partial<GatewayOptions> = {}) {
  const upstream = fakeNodes(nodes);
  const gateway = createGateway({
    nodes: Object.keys(nodes),
    upstream,
    keys: createKeyStore(createMemoryKeys(), () => 1000),
    isOpen: true,
    browsers: { hosts: ['gateway'], corsOrigins: [] },
    random: () => 0, // the order of the list
    ...options,
    limits: { nodeWaitMs: 0, ...options.limits },
  });
  open.push(gateway);
  await gateway.ready();
  return { gateway, upstream };
}

function ask(
  gateway: Gateway,
  { path = '/v1/completions', body = { model: 'm', prompt: 'hi' } as object, headers = {}, signal = new AbortController().signal, method = 'POST' } = {}, // prettier-ignore
): Promise<GatewayResponse> {
  return gateway.handle({
    method,
    target: path,
    headers: new Headers({ host: 'gateway', 'content-type': 'application/json', ...headers }),
    readBody: async () => (method === 'POST' ? encode(JSON.stringify(body)) : new Uint8Array()),
    signal,
  });
}

async function textOf({ body }: GatewayResponse): Promise<string> {
  if (body instanceof Uint8Array) return new TextDecoder().decode(body);
  let text = '';
  for await (const chunk of body) text += new TextDecoder().decode(chunk);
  return text;
}

const ok: Answer = () => answer(200, { ok: true });

describe('a request without a sent byte', () => {
  test('[GW1] is answered by another node if the connection is refused or breaks before the answer', async () => {
    for (const isSent of [false, true]) {
      const { gateway } = await start({ 'http://a': () => Promise.reject(lost(isSent)), 'http://b': ok });
      const responses = await Promise.all([ask(gateway), ask(gateway), ask(gateway)]);
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(responses.every(({ headers }) => headers['x-ruvllm-node'] === '2')).toBe(true);
    }
  });

  test('[GW1] is answered by another node if the body breaks off before its end, or a stream before its first event', async () => {
    const broken: UpstreamResponse[] = [
      { ...answer(200, ''), body: pieces('{"half":', lost(true)) },
      stream(lost(true)),
    ];
    for (const one of broken) {
      const { gateway } = await start({ 'http://a': () => one, 'http://b': ok });
      expect(await textOf(await ask(gateway))).toBe('{"ok":true}');
    }
  });

  test('[GW2] is answered by another node if the first one shuts down, and that node gets no more', async () => {
    const closing = (): UpstreamResponse => answer(503, { error: { code: 'shutting_down' } });
    const { gateway, upstream } = await start({ 'http://a': closing, 'http://b': ok });
    for (let i = 0; i < 5; i++) expect((await ask(gateway)).status).toBe(200);
    expect(upstream.sent['http://a']).toHaveLength(1);
  });

  test('[GW3] goes to a node that serves its model, and a 404 is answered if none does', async () => {
    const none = (): UpstreamResponse => answer(404, { error: { code: 'model_not_found' } });
    const { gateway, upstream } = await start({ 'http://a': none, 'http://b': ok });
    for (let i = 0; i < 5; i++) expect((await ask(gateway)).status).toBe(200);
    expect(upstream.sent['http://a']!.length).toBeLessThan(2);
    const { gateway: other } = await start({ 'http://a': none, 'http://b': none });
    for (let i = 0; i < 3; i++) expect((await ask(other)).status).toBe(404);
  });

  test('[GW4] that ends three nodes is not sent to a fourth', async () => {
    const dies: Answer = () => Promise.reject(lost(true));
    const nodes = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [`http://${name}`, dies]));
    const { gateway, upstream } = await start(nodes);
    const response = await ask(gateway);
    expect(response.status).toBe(503);
    expect(response.headers['retry-after']).toBeDefined();
    expect(await textOf(response)).toContain('3 nodes were lost');
    expect(Object.values(upstream.sent).flat()).toHaveLength(3);
  });

  test('[GW5] that writes is not repeated if the first node may have done it', async () => {
    const { gateway, upstream } = await start({ 'http://a': () => Promise.reject(lost(true)), 'http://b': () => Promise.reject(lost(true)) }); // prettier-ignore
    const response = await ask(gateway, { path: '/v1/conversations', body: {} });
    expect(response.status).toBe(502);
    expect(await textOf(response)).toContain('may have taken effect');
    expect(Object.values(upstream.sent).flat()).toHaveLength(1);
  });
});

describe('a node that answers /health and nothing else', () => {
  const hang: Answer = ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(lost(true)), { once: true }));
  const STREAMED = { body: { model: 'm', prompt: 'hi', stream: true } };
  async function open(b: Answer = ok) {
    let a = hang;
    const clock = createManualClock();
    const nodes = { 'http://a': (request: UpstreamRequest) => a(request), 'http://b': b };
    const started = await start(nodes, { clock, limits: { firstByteMs: 1000, answerMs: 60_000 } });
    const pass = async (ms: number): Promise<void> => {
      await settle();
      clock.advance(ms);
      await settle();
    };
    const sentTo = (): number[] => ['http://a', 'http://b'].map((url) => started.upstream.sent[url]?.length ?? 0);
    const reasons = async (): Promise<unknown> => {
      const fleet = await ask(started.gateway, { path: '/fleet', method: 'GET' });
      return (JSON.parse(await textOf(fleet)) as { nodes: { health: string; reason: string | null }[] }).nodes.map(
        ({ health, reason }) => [health, reason],
      );
    };
    return { ...started, clock, pass, sentTo, reasons, recover: () => void (a = ok) };
  }

  test('[GW25] loses its requests to another one, and gets no more for a while', async () => {
    const { gateway, pass, sentTo, reasons, recover } = await open();
    const first = ask(gateway, STREAMED);
    await pass(1000);
    expect((await first).headers['x-ruvllm-node']).toBe('2');
    expect(await reasons()).toEqual([
      ['up', 'it does not answer the requests that it accepts'],
      ['up', null],
    ]);
    for (let i = 0; i < 5; i++) expect((await ask(gateway, STREAMED)).status).toBe(200);
    expect(sentTo()).toEqual([1, 6]);
    // After a while one request asks it again, and only one at a time.
    await pass(10_000);
    const answers = Array.from({ length: 4 }, () => ask(gateway, STREAMED));
    await pass(1000);
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(sentTo()[0]).toBe(2);
    recover();
    await pass(10_000);
    await ask(gateway, STREAMED);
    expect(sentTo()[0]).toBe(2); // twice as long
    await pass(10_000);
    await ask(gateway, STREAMED);
    await ask(gateway, STREAMED);
    expect([sentTo()[0], await reasons()]).toEqual([
      3,
      [
        ['up', null],
        ['up', null],
      ],
    ]);
  });

  test('[GW25] is found although its clients leave before a limit passes', async () => {
    const { gateway, pass, reasons } = await open(hang);
    for (let i = 0; i < 4; i++) {
      const client = new AbortController();
      const left = ask(gateway, { ...STREAMED, signal: client.signal });
      await pass(600);
      client.abort();
      expect((await left).status).toBe(499);
    }
    const silent = ['up', 'it does not answer the requests that it accepts'];
    expect(await reasons()).toEqual([silent, silent]);
  });

  test('[GW25] keeps an answer that is no stream for longer, and a request that writes is not repeated', async () => {
    const { gateway, pass, sentTo } = await open();
    const whole = ask(gateway);
    await pass(1000);
    expect(sentTo()).toEqual([1, 0]);
    await pass(59_000);
    expect((await whole).headers['x-ruvllm-node']).toBe('2');
    const { gateway: other, pass: wait, sentTo: sent } = await open();
    const write = ask(other, { path: '/v1/conversations', body: {} });
    await wait(60_000);
    expect([(await write).status, sent()]).toEqual([502, [1, 0]]);
  });

  test('[GW25] is left out of the list of models', async () => {
    const { gateway, pass } = await open(() => answer(200, { object: 'list', data: [{ id: 'm' }] }));
    const list = ask(gateway, { path: '/v1/models', method: 'GET' });
    await pass(5000);
    expect(await textOf(await list)).toContain('"m"');
  });
});

describe('a stream', () => {
  test('[GW6] that breaks off ends with whole events and an error in the format of its route', async () => {
    const half = (): UpstreamResponse => stream('data: {"a":1}\n\nda', 'ta: {"b":2}\n', '\ndata: {"c"', lost(true));
    const { gateway } = await start({ 'http://a': half });
    const text = await textOf(await ask(gateway));
    expect(text).toMatch(/^data: \{"a":1\}\n\ndata: \{"b":2\}\n\ndata: \{"error":\{"message":"node 1 was lost/);
    expect(text).toMatch(/\n\n$/);
    const anthropic = await textOf(await ask(gateway, { path: '/v1/messages' }));
    expect(anthropic).toMatch(/event: error\ndata: \{"type":"error"/);
  });

  test('[GW7] whose client leaves ends the request to the node and frees its place', async () => {
    let isEnded = false;
    const endless: Answer = ({ signal }) => ({
      ...stream(),
      body: (async function* () {
        signal.addEventListener('abort', () => (isEnded = true));
        for (;;) yield encode('data: {}\n\n');
      })(),
    });
    const { gateway } = await start({ 'http://a': endless });
    const { body } = await ask(gateway);
    for await (const _chunk of body as AsyncIterable<Uint8Array>) break;
    expect(isEnded).toBe(true);
    expect(gateway.nodes[0]).toMatchObject({ numRequests: 0, pendingTokens: 0 });
  });
});

test('[GW8] requests go to the node with the least work', async () => {
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const slow: Answer = async () => (await held, answer(200, {}));
  const { gateway, upstream } = await start({ 'http://a': slow, 'http://b': slow, 'http://c': slow });
  const waiting = Array.from({ length: 9 }, () => ask(gateway));
  await expect.poll(() => Object.values(upstream.sent).flat().length).toBe(9);
  expect(Object.values(upstream.sent).map((requests) => requests.length)).toEqual([3, 3, 3]);
  release();
  await Promise.all(waiting);
  expect(gateway.nodes.every(({ numRequests, pendingTokens }) => numRequests === 0 && pendingTokens === 0)).toBe(true);
});

test('[GW8] gateways begin with different nodes', async () => {
  const firstOf = async (...numbers: number[]): Promise<string> => {
    const { gateway } = await start(
      { 'http://a': ok, 'http://b': ok, 'http://c': ok },
      { random: () => numbers.shift()! },
    );
    return (await ask(gateway)).headers['x-ruvllm-node']!;
  };
  expect([await firstOf(0.9, 0.1, 0.1), await firstOf(0.1, 0.9, 0.1), await firstOf(0.1, 0.1, 0.9)]).toEqual([
    '1',
    '2',
    '3',
  ]);
});

test('[GW9] one tenant that floods the fleet is limited, and another is answered', async () => {
  const keys: KeyStore = createKeyStore(createMemoryKeys(), () => 1000);
  const create = async (tenant: string): Promise<string> =>
    (await keys.create({ name: tenant, tenant, scopes: ['inference'] })).token;
  const [flood, calm] = [await create('flood'), await create('calm')];
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const slow: Answer = async () => (await held, answer(200, {}));
  const { gateway, upstream } = await start(
    { 'http://a': slow, 'http://b': slow },
    { keys, isOpen: false, limits: { maxRequestsPerTenant: 4 } },
  );
  const asFlood = { headers: { authorization: `Bearer ${flood}` } };
  const waiting = Array.from({ length: 20 }, () => ask(gateway, asFlood));
  await expect.poll(() => Object.values(upstream.sent).flat().length).toBe(4);
  const other = ask(gateway, { headers: { authorization: `Bearer ${calm}` } });
  await expect.poll(() => Object.values(upstream.sent).flat().length).toBe(5);
  release();
  expect((await other).status).toBe(200);
  const statuses = (await Promise.all(waiting)).map(({ status }) => status).sort();
  expect(statuses).toEqual([...Array(4).fill(200), ...Array(16).fill(429)]);
});

test('[GW9] requests that only read count, too', async () => {
  const { gateway } = await start(
    { 'http://a': () => answer(200, { data: [] }) },
    { limits: { burst: 3, requestsPerMinute: 1 } },
  );
  const reads = [{ path: '/v1/models', method: 'GET' }, { path: '/v1/files', method: 'GET' }, { path: '/api/show' }];
  for (const read of reads) expect((await ask(gateway, read)).status).toBe(200);
  for (const read of reads) expect((await ask(gateway, read)).status).toBe(429);
});

test('[GW10] refuses requests without a key, from other hosts, and for routes of one node', async () => {
  const { gateway, upstream } = await start({ 'http://a': ok }, { isOpen: false });
  expect((await ask(gateway)).status).toBe(401);
  const { gateway: isOpen } = await start({ 'http://a': ok });
  expect((await ask(isOpen, { headers: { host: 'evil.example' } })).status).toBe(403);
  expect((await ask(isOpen, { headers: { origin: 'https://evil.example' } })).status).toBe(403);
  expect((await ask(isOpen, { path: '/admin/models/unload' })).status).toBe(501);
  expect((await ask(isOpen, { path: '/nothing' })).status).toBe(404);
  expect((await ask(isOpen, { path: '/v1/completions', method: 'GET' })).status).toBe(405);
  expect(Object.values(upstream.sent)).toEqual([]);
});

test('[GW11] passes headers on, except those of the connection, of browsers and of the fleet', async () => {
  const { gateway, upstream } = await start({
    'http://a': () => ({ ...answer(200, {}), headers: { 'x-request-id': '1', 'x-ruvllm-fleet-prompt': 'x', connection: 'close' } }), // prettier-ignore
  });
  const sent = { connection: 'x-hop', 'x-hop': '1', 'x-api-key': 'k', 'x-ruvllm-fleet-ask': 'forged', origin: 'http://gateway' }; // prettier-ignore
  const { headers } = await ask(gateway, { headers: sent });
  expect(headers).toEqual({ 'x-request-id': '1', 'x-ruvllm-node': '1' });
  expect(upstream.sent['http://a']![0]!.headers).toEqual({ 'content-type': 'application/json', 'x-api-key': 'k', via: expect.stringMatching(/^1\.1 ruvllm-gateway-\w{16}$/) }); // prettier-ignore
});

test('[GW12] lists the models of all nodes once', async () => {
  const list = (...ids: string[]): Answer => () => answer(200, { object: 'list', data: ids.map((id) => ({ id })) }); // prettier-ignore
  const { gateway } = await start({ 'http://a': list('x', 'y'), 'http://b': list('y', 'z'), 'http://c': () => Promise.reject(lost(false)) }); // prettier-ignore
  const text = await textOf(await ask(gateway, { path: '/v1/models', method: 'GET' }));
  expect(JSON.parse(text)).toEqual({ object: 'list', data: [{ id: 'x' }, { id: 'y' }, { id: 'z' }] });
});

test('[GW13] answers 503 without nodes, and asks them again before it does', async () => {
  let isUp = false;
  const upstream = fakeNodes({ 'http://a': ok });
  const send: Upstream['send'] = (url, request) => (isUp ? upstream.send(url, request) : Promise.reject(lost(false)));
  const { gateway } = await start({ 'http://a': ok }, { upstream: { ...upstream, send } });
  expect((await ask(gateway, { path: '/health', method: 'GET' })).status).toBe(503);
  const response = await ask(gateway);
  expect(response.status).toBe(503);
  expect(await textOf(response)).toContain('none of 1 nodes can answer');
  isUp = true;
  expect((await ask(gateway)).status).toBe(200);
});

test('[GW17] requests wait while no node is up, and a node that was lost may answer when it is back', async () => {
  const clock = createManualClock();
  let isUp = true;
  const upstream = fakeNodes({ 'http://a': ok });
  const send: Upstream['send'] = (url, request) => (isUp ? upstream.send(url, request) : Promise.reject(lost(false)));
  const { gateway } = await start({ 'http://a': ok }, { clock, upstream: { ...upstream, send }, limits: { nodeWaitMs: 1000 } }); // prettier-ignore
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100);
      await settle();
    }
  };
  isUp = false;
  const waiting = ask(gateway);
  await pass(500);
  isUp = true;
  await pass(300);
  expect((await waiting).status).toBe(200);
  isUp = false;
  const hopeless = ask(gateway);
  await pass(1300);
  const response = await hopeless;
  expect(response.status).toBe(503);
  expect(await textOf(response)).toContain('none of 1 nodes can answer');
});

test('[GW13] a node that hangs is lost after two missed answers, and its requests without a byte go elsewhere', async () => {
  const clock = createManualClock();
  let isHanging = false;
  const hang = ({ signal }: UpstreamRequest): Promise<never> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(lost(true)), { once: true }));
  const upstream = fakeNodes({ 'http://a': hang, 'http://b': ok });
  const send: Upstream['send'] = (url, request) =>
    isHanging && url === 'http://a' ? hang(request) : upstream.send(url, request);
  const { gateway } = await start({ 'http://a': hang, 'http://b': ok }, { upstream: { ...upstream, send }, clock });
  isHanging = true;
  const answers = [ask(gateway), ask(gateway)];
  await settle();
  expect(gateway.nodes[0]).toMatchObject({ health: 'up', numRequests: 1 });
  for (const waitMs of [1000, 2000]) {
    clock.advance(waitMs);
    await settle();
  }
  expect(gateway.nodes[0]!.health).toBe('up'); // one missed answer may be a busy machine
  for (const waitMs of [1000, 2000]) {
    clock.advance(waitMs);
    await settle();
  }
  expect(gateway.nodes[0]!.health).toBe('down');
  for (const { status, headers } of await Promise.all(answers)) {
    expect([status, headers['x-ruvllm-node']]).toEqual([200, '2']);
  }
});

describe('[GW1] another node', () => {
  const lack = (text: string): Answer => () => answer(404, text); // prettier-ignore

  test('gets a request that writes if the first one never saw it', async () => {
    const { gateway } = await start({ 'http://a': () => Promise.reject(lost(false)), 'http://b': ok });
    const response = await ask(gateway, { path: '/v1/conversations', body: {} });
    expect([response.status, response.headers['x-ruvllm-node']]).toEqual([200, '2']);
  });

  test('does not get one that was answered with another 404, or without a model', async () => {
    const nodes = { 'http://a': lack('no such file'), 'http://b': ok };
    const { gateway, upstream } = await start(nodes);
    expect((await ask(gateway)).status).toBe(404);
    const none = await start({ ...nodes, 'http://a': lack('model_not_found') });
    expect((await ask(none.gateway, { body: { prompt: 'hi' } })).status).toBe(404);
    expect([upstream.sent['http://b'], none.upstream.sent['http://b']]).toEqual([undefined, undefined]);
  });
});

/** An affinity that knows what nodes report. */
const reporting = (fleet: Record<string, GatewayNode['fleet']>, plan: Partial<AffinityPlan> = {}): Affinity => ({
  numTexts: 7,
  plan: () => ({ numTokens: 10, warmTokens: () => 0, headers: {}, learn() {}, ...plan }),
  checkNode: async (node) => void (node.fleet = fleet[node.url] ?? null),
  forgetNode() {},
  close() {},
});

test('[GW3] a node that reports the model is preferred; without a model all are equal', async () => {
  const models = [{ id: 'm', aliases: [], modelHash: 'h', adapters: ['x'] }];
  const { gateway } = await start(
    { 'http://a': ok, 'http://b': ok },
    { openAffinity: () => reporting({ 'http://b': { version: '2', models, release: 3, numRequests: 0 } }) },
  );
  const nodeOf = async (body: object) => (await ask(gateway, { body })).headers['x-ruvllm-node'];
  for (let i = 0; i < 3; i++) expect(await nodeOf({ model: 'm', prompt: 'x' })).toBe('2');
  expect(new Set([await nodeOf({ prompt: 'x' }), await nodeOf({ prompt: 'x' })])).toEqual(new Set(['1', '2']));
  const { nodes, ...rest } = JSON.parse(await textOf(await ask(gateway, { path: '/fleet', method: 'GET' }))) as { nodes: object[] }; // prettier-ignore
  expect(rest).toEqual({ gateways: 1, texts: 7, release: 0 });
  const load = { health: 'up', reason: null, requests: 0, other_requests: 0, blocks: 0 };
  expect(nodes).toEqual([
    { ...load, node: '1', url: 'http://a', version: null, release: null, models: null },
    { ...load, node: '2', url: 'http://b', version: '2', release: 3, models: [{ id: 'm', hash: 'h', adapters: ['x'] }] }, // prettier-ignore
  ]);
  const alone = await start({});
  expect(JSON.parse(await textOf(await ask(alone.gateway, { path: '/fleet', method: 'GET' })))).toEqual({ nodes: [], gateways: 1, texts: 0, release: 0 }); // prettier-ignore
});

test('[GW15] metrics say which nodes are up, and count warm tokens up to those of the prompt', async () => {
  const { gateway } = await start(
    { 'http://a': ok, 'http://b': ok },
    { openAffinity: () => ({ ...reporting({}, { warmTokens: () => 16 }), checkNode: ({ url }) => (url === 'http://a' ? Promise.resolve() : Promise.reject(new Error('another secret'))) }) }, // prettier-ignore
  );
  await ask(gateway);
  await ask(gateway, { path: '/nothing' });
  const text = await textOf(await ask(gateway, { path: '/metrics', method: 'GET' }));
  for (const line of [
    'ruvllm_gateway_node_up{node="1"} 1',
    'ruvllm_gateway_node_up{node="2"} 0',
    'ruvllm_gateway_prompt_tokens_total{kind="all"} 10',
    'ruvllm_gateway_prompt_tokens_total{kind="warm"} 10',
    'ruvllm_gateway_requests_total{route="/v1/completions",status="200"} 1',
    'ruvllm_gateway_requests_total{route="unknown",status="404"} 1',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
});

describe('[GW16] nodes that announce themselves', () => {
  const keys = deriveFleetKeys('the secret of the fleet in these tests');

  test('join and leave; those of the list stay', async () => {
    const clock = createManualClock();
    const { bus, state } = createMemoryBus();
    const nodes: Record<string, Answer> = { 'http://a': ok, 'http://b': ok };
    const forgotten: string[] = [];
    const openAffinity = (): Affinity => ({ ...reporting({}), forgetNode: ({ url }) => void forgotten.push(url) });
    const upstream = fakeNodes(nodes);
    const { gateway } = await start({ 'http://a': ok }, { clock, upstream, shared: { bus, keys }, openAffinity });
    const seen = () => gateway.nodes.map(({ name, url, health }) => [name, url, health]);
    const [a, b] = ['http://a', 'http://b'].map((url) => announceNode(bus, keys, clock, url));
    await settle();
    expect(seen()).toEqual([['1', 'http://a', 'up'], ['2', 'http://b', 'up']]); // prettier-ignore
    // Silent, but it answers.
    clock.advance(10_000);
    await settle();
    expect(seen()).toHaveLength(2);
    for (const one of [b, a]) await one!.leave();
    expect([seen(), forgotten]).toEqual([[['1', 'http://a', 'up']], ['http://b']]);
    clock.advance(10);
    announceNode(bus, keys, clock, 'http://b');
    await settle();
    expect(seen()[1]).toEqual(['3', 'http://b', 'up']);
    const health = async () => JSON.parse(await textOf(await ask(gateway, { path: '/health', method: 'GET' }))) as object; // prettier-ignore
    expect(await health()).toEqual({ status: 'ok', nodes: 2, nodes_up: 2, degraded: [] });
    state.isConnected = false;
    expect(await health()).toMatchObject({ degraded: ['nats'] });
  });

  test('leave when they are silent and do not answer', async () => {
    const clock = createManualClock();
    const { bus } = createMemoryBus();
    const nodes: Record<string, Answer> = { 'http://b': ok };
    const upstream = fakeNodes(nodes);
    let isUp = true;
    const send: Upstream['send'] = (url, request) => (isUp || url !== 'http://b' ? upstream.send(url, request) : Promise.reject(lost(false))); // prettier-ignore
    const { gateway } = await start({ 'http://a': ok }, { clock, upstream: { ...upstream, send }, shared: { bus, keys } }); // prettier-ignore
    announceNode(bus, keys, clock, 'http://b');
    await settle();
    isUp = false;
    for (let i = 0; i < 12; i++) {
      clock.advance(1000);
      await settle();
    }
    expect(gateway.nodes.map(({ url }) => url)).toEqual(['http://a']);
  });

  test('answer requests that waited for the first one', async () => {
    const clock = createManualClock();
    const { bus } = createMemoryBus();
    const { gateway } = await start({}, { clock, upstream: fakeNodes({ 'http://a': ok }), shared: { bus, keys }, limits: { nodeWaitMs: 1000 } }); // prettier-ignore
    const waiting = ask(gateway);
    await settle();
    announceNode(bus, keys, clock, 'http://a');
    for (let i = 0; i < 10; i++) {
      await settle();
      clock.advance(100);
    }
    expect((await waiting).status).toBe(200);
  });
});

describe('[GW10] a refusal', () => {
  test('has the format of its route, or of the client', async () => {
    const { gateway } = await start({ 'http://a': ok });
    const errorOf = async (given: Parameters<typeof ask>[1]) => JSON.parse(await textOf(await ask(gateway, given))) as { type?: string; error: unknown }; // prettier-ignore
    const anthropic = { headers: { 'anthropic-version': '1', host: 'evil.example' } };
    expect((await errorOf({ path: '/nothing' })).type).toBeUndefined();
    expect((await errorOf({ path: '/nothing', headers: { 'anthropic-version': '1' } })).type).toBe('error');
    expect((await errorOf({ path: '/v1/models', method: 'GET', ...anthropic })).type).toBe('error');
    expect((await errorOf({ path: '/v1/messages', headers: { host: 'evil.example' } })).type).toBe('error');
    // A format of its own stays, whoever asks.
    expect(await errorOf({ path: '/api/chat', ...anthropic })).toEqual({ error: expect.any(String) });
  });

  test('says whether to come back', async () => {
    const { gateway } = await start({ 'http://a': () => Promise.reject(new Error('a bug')) }, { isOpen: false });
    const denied = await ask(gateway);
    expect([denied.status, denied.headers['www-authenticate'], denied.headers['x-should-retry']]).toEqual([401, 'Bearer', undefined]); // prettier-ignore
    const open = await start({});
    const busy = await ask(open.gateway);
    expect([busy.status, busy.headers['retry-after'], busy.headers['x-should-retry']]).toEqual([503, '2', undefined]);
    expect(busy.headers['www-authenticate']).toBeUndefined();
    const node = await ask(open.gateway, { path: '/admin/models/unload' });
    expect([node.status, node.headers['retry-after'], node.headers['x-should-retry']]).toEqual([501, undefined, 'false']); // prettier-ignore
    expect((await ask(open.gateway, { path: '/nothing' })).headers['x-should-retry']).toBeUndefined();
  });

  test('depends on the scope of the path and the key', async () => {
    const store = createKeyStore(createMemoryKeys(), () => 1000);
    const tokenOf = async (scope: 'inference' | 'read-only' | 'download'): Promise<string> => (await store.create({ name: scope, tenant: 't', scopes: [scope] })).token; // prettier-ignore
    const { gateway } = await start({ 'http://a': ok }, { keys: store, isOpen: false });
    const statuses = async (scope: 'inference' | 'read-only' | 'download'): Promise<number[]> => {
      const headers = { authorization: `Bearer ${await tokenOf(scope)}` };
      const asked = [{ path: '/metrics', method: 'GET' }, { path: '/metrics', method: 'HEAD' }, { path: '/nothing', method: 'GET' }, {}]; // prettier-ignore
      return Promise.all(asked.map(async (given) => (await ask(gateway, { ...given, headers })).status));
    };
    expect(await statuses('inference')).toEqual([403, 403, 404, 200]);
    expect(await statuses('read-only')).toEqual([200, 200, 404, 403]);
    expect(await statuses('download')).toEqual([403, 403, 403, 403]);
    expect((await ask(gateway, { path: '/health', method: 'GET' })).status).toBe(200);
  });
});

test('[GW15] each request is logged, with its route and its node if it has them', async () => {
  const logs: [string, object][] = [];
  const { gateway } = await start(
    { 'http://a': ok, 'http://b': ok },
    { logger: { log: (level, event, fields) => void (event === 'request' && logs.push([level, fields])) } },
  );
  await ask(gateway);
  await ask(gateway, { path: '/nothing' });
  await gateway.shutDown(0);
  await ask(gateway);
  expect(logs).toMatchObject([
    ['info', { method: 'POST', route: '/v1/completions', status: 200, node: '1' }],
    ['info', { method: 'POST', route: null, status: 404, node: null }],
    ['warn', { method: 'POST', route: '/v1/completions', status: 503, node: null }],
  ]);
});

test('[GW14] refuses unknown and invalid limits by name', () => {
  const make = (limits: object): Gateway =>
    createGateway({ nodes: [], upstream: fakeNodes({}), keys: createKeyStore(createMemoryKeys(), () => 0), isOpen: true, browsers: { hosts: null, corsOrigins: [] }, limits }); // prettier-ignore
  expect(() => make({ maxRequest: 1 })).toThrow('"maxRequest"');
  expect(() => make({ maxRequests: 0 })).toThrow('"maxRequests"');
});

test('[GW24] a gateway that is not alone lets requests of about equal nodes take turns', async () => {
  const keys = deriveFleetKeys('the secret of the fleet in these tests');
  for (const numOthers of [0, 1]) {
    const clock = createManualClock();
    const { bus } = createMemoryBus();
    let release = (): void => {};
    let isFirst = true;
    const holding: Answer = () => {
      if (!isFirst) return answer(200, { ok: true });
      isFirst = false;
      return new Promise((resolve) => (release = () => resolve(answer(200, { ok: true }))));
    };
    const { gateway } = await start({ 'http://a': holding, 'http://b': ok }, { shared: { bus, keys }, clock });
    for (let i = 0; i < numOthers; i++) createTenantUsage({ bus, keys, clock, onRefused() {} });
    clock.advance(1);
    const first = ask(gateway);
    await settle();
    // A request in progress is 128 tokens of load, less than the step of two gateways.
    const nodes = [await ask(gateway), await ask(gateway)].map(({ headers }) => headers['x-ruvllm-node']);
    release();
    await first;
    expect(nodes).toEqual(numOthers === 0 ? ['2', '2'] : ['2', '1']);
  }
});
