import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createSpokenModel, type SpokenModel } from '../../../test/support/spoken-model.ts';
import { openTestMemory, type TestMemory } from '../../../test/support/test-memory.ts';
import { createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { trainRouter } from '../../learning/router-training/train-router.ts';
import { trajectoryFixture } from '../../learning/trajectories/harness.contract.ts';
import { createTrajectories } from '../../learning/trajectories/trajectories.ts';
import { createRouterLoop } from '../../runtime/routing/router-loop.ts';
import { CONFIG, configOf, FAR_KEY, serveConstant } from '../../runtime/routing/routing.contract.ts';
import { createRouting } from '../../runtime/routing/routing.ts';
import type { Routing } from '../../runtime/routing/types.ts';
import { AUDIT_KIND } from '../../memory/types.ts';

/** What the engine elsewhere does with the next requests. */
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let far: HttpServer;
let url: string;
const heard: { readonly authorization: string | undefined; readonly body: Record<string, unknown>; readonly path: string }[] = []; // prettier-ignore

beforeAll(async () => {
  far = createHttpServer((request, response) => {
    let text = '';
    request.on('data', (piece: Buffer) => (text += piece.toString()));
    request.on('end', () => {
      heard.push({ authorization: request.headers.authorization, body: JSON.parse(text), path: request.url! });
      answer(request, response);
    });
  });
  await new Promise<void>((resolve) => far.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(far.address() as AddressInfo).port}/v1`;
});
afterAll(() => {
  far.closeAllConnections();
  far.close();
});

const chunk = (delta: object, finish: string | null = null, more: object = {}): string =>
  `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`; // prettier-ignore
const USAGE = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 11, completion_tokens: 2, total_tokens: 13 } })}\n\n`; // prettier-ignore
const GOOD = [chunk({ role: 'assistant', content: '' }), chunk({ content: 'From ' }), chunk({ content: 'afar.' }), chunk({}, 'stop'), USAGE, 'data: [DONE]\n\n']; // prettier-ignore
const events =
  (...parts: readonly string[]) =>
  (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const part of parts) response.write(part);
    response.end();
  };
const status =
  (code: number, headers: Record<string, string> = {}) =>
  (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers });
    // As some do: the key in the words of the refusal.
    response.end(JSON.stringify({ error: { message: `wrong key ${FAR_KEY}` } }));
  };

/** To where an answer could be had, for who follows. */
const redirect = (request: IncomingMessage, response: ServerResponse): void =>
  request.url === '/elsewhere'
    ? events(...GOOD)(request, response)
    : status(307, { location: '/elsewhere' })(request, response);

const candidatesWith = (changes: object) =>
  CONFIG.candidates.map((one) => (one.kind === 'remote' ? { ...one, ...changes } : one));

let memory: TestMemory;
let spoken: SpokenModel;
let server: TestServer;
let routing: Routing;
const logged: string[] = [];

async function open(candidate: number, changes: object = {}): Promise<void> {
  memory = await openTestMemory();
  spoken = createSpokenModel(['From here.']);
  const candidates = candidatesWith({ url });
  const config = configOf({ candidates, ...changes });
  await serveConstant(memory, 'local', config, { candidate, confidence: 0.95 });
  routing = createRouting({
    config,
    memory,
    now: () => performance.now(),
    seed: 1,
    report: (text) => logged.push(text),
  });
  server = createTestServer([entryOf('small', async () => spoken.model), entryOf('large', async () => spoken.model)], {
    memory,
    routing,
    logger: { log: (...line) => void logged.push(JSON.stringify(line)) },
  });
}
beforeEach(() => {
  heard.length = 0;
  logged.length = 0;
  answer = events(...GOOD);
});
afterEach(() => {
  expect(logged.join('\n')).not.toContain(FAR_KEY);
});

const messages = [{ role: 'user', content: 'where is the blue whale?' }];
const post = (path: string, body: object, signal?: AbortSignal): Promise<Response> =>
  server.fetch(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(path === '/v1/messages' ? { 'anthropic-version': '2023-06-01' } : {}),
      },
      body: JSON.stringify({ model: 'auto', ...body }),
      ...(signal === undefined ? {} : { signal }),
    }),
  );
const chat = (body: object = {}, signal?: AbortSignal) => post('/v1/chat/completions', { messages, ...body }, signal);

async function kept() {
  const { store } = memory;
  const close = store.close.bind(store);
  Object.assign(store, { close: async () => {} });
  await server.shutDown(1000);
  const { records } = await store.find('local', { kinds: [AUDIT_KIND], order: 'oldest', limit: 100 });
  await close();
  return records.map(({ body }) => (body as { entry: Record<string, unknown> }).entry);
}

describe('an engine elsewhere', () => {
  test('[SR1] answers, with its usage, and is named in the headers and the log', async () => {
    await open(2);
    const response = await chat({ temperature: 0.3, max_tokens: 9 });
    expect(response.status).toBe(200);
    expect([response.headers.get('x-route'), response.headers.get('x-route-reason')]).toEqual(['far', 'fixed']);
    expect(await response.json()).toMatchObject({
      model: 'far',
      choices: [{ message: { content: 'From afar.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 11, completion_tokens: 2 },
    });
    expect(heard).toMatchObject([
      {
        authorization: `Bearer ${FAR_KEY}`,
        path: '/v1/chat/completions',
        body: { model: 'far-1', messages, temperature: 0.3, max_tokens: 9, stream: true },
      },
    ]);
    const [entry] = await kept();
    expect(entry).toMatchObject({
      model: 'far',
      response: 'From afar.',
      numPromptTokens: 11,
      routing: { model: 'far', confidence: expect.closeTo(0.95, 5), temperature: 0.3 },
      error: null,
    });
    expect((entry!['latency'] as { routingMs: number }).routingMs).toBeGreaterThan(0);
    expect(JSON.stringify(entry)).not.toContain(FAR_KEY);
  });

  test.each([
    ['/v1/chat/completions', { messages, stream: true }],
    ['/v1/responses', { input: 'where is the blue whale?' }],
    ['/v1/responses', { input: 'where is the blue whale?', stream: true }],
    ['/v1/messages', { messages, max_tokens: 50 }],
    ['/v1/messages', { messages, max_tokens: 50, stream: true }],
    ['/v1/completions', { prompt: 'where is the blue whale?' }],
    ['/v1/completions', { prompt: 'where is the blue whale?', stream: true }],
  ])('[SR1] speaks %s %j', async (path, body) => {
    await open(2);
    const response = await post(path, body);
    const text = await response.text();
    expect([response.status, response.headers.get('x-route')]).toEqual([200, 'far']);
    expect(text.replaceAll(/[^a-zA-Z.]+/g, ' ')).toMatch(/From .*afar\./);
  });

  test('[SR1] calls tools', async () => {
    const call = (one: object): string => chunk({ tool_calls: [{ index: 0, ...one }] });
    answer = events(call({ id: 'c1', function: { name: 'look', arguments: '{"at"' } }), call({ function: { arguments: ':"sea"}' } }), chunk({}, 'tool_calls'), 'data: [DONE]\n\n'); // prettier-ignore
    await open(2);
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];
    expect(await (await chat({ tools })).json()).toMatchObject({
      choices: [
        {
          finish_reason: 'tool_calls',
          message: { tool_calls: [{ id: 'c1', function: { name: 'look', arguments: '{"at":"sea"}' } }] },
        },
      ],
    });
    expect(heard[0]!.body).toMatchObject({ tools: [{ function: { name: 'look' } }] });
  });

  test('[SR1] pieces may come byte by byte, with comments and any line break', async () => {
    const bytes = Buffer.from(`: hello\r\n\r\n${GOOD.join('').replaceAll('\n', '\r\n').replace('afar', 'äfar')}`);
    answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
      void (async () => {
        for (let at = 0; at < bytes.length; at += 7) {
          response.write(bytes.subarray(at, at + 7));
          await new Promise((resolve) => setImmediate(resolve));
        }
        response.end();
      })();
    };
    await open(2);
    expect(await (await chat()).json()).toMatchObject({ choices: [{ message: { content: 'From äfar.' } }] });
  });

  test('[SR1] is asked on a new connection if it has closed an old one', async () => {
    const sockets = new Set<object>();
    answer = (request, response) => {
      if (sockets.has(request.socket)) return void request.socket.destroy();
      sockets.add(request.socket);
      events(...GOOD)(request, response);
    };
    await open(2);
    for (let i = 0; i < 3; i++) expect((await chat()).headers.get('x-route')).toBe('far');
    expect(heard.length).toBeGreaterThan(3);
  });

  test.each([
    ['401', status(401), 'remote_failed'],
    ['429', status(429), 'overloaded'],
    ['500', status(500), 'remote_failed'],
    ['404', status(404), 'remote_failed'],
    ['a redirect', redirect, 'remote_failed'],
    ['no stream', (_: IncomingMessage, response: ServerResponse) => response.end('{}'), 'remote_failed'],
    ['broken JSON', events('data: {"choices": [\n\n'), 'remote_failed'],
    ['a list', events('data: []\n\n'), 'remote_failed'],
    ['an error as an event', events(`data: {"error":{"message":"${FAR_KEY}"}}\n\n`), 'remote_failed'],
    ['nothing', events(), 'remote_failed'],
    ['a huge line', events(`data: ${'x'.repeat(5 << 20)}`), 'remote_failed'],
    ['silence', () => {}, 'deadline_exceeded'],
    ['a reset', (request: IncomingMessage) => request.socket.destroy(), 'remote_failed'],
    ['a choice that is none', events(`data: {"choices":[{"index":7,"delta":{"content":"x"}}]}\n\n`), 'remote_failed'],
  ])(
    '[SR2] that answers with %s before its first token is replaced by the safe default',
    async (_name, wrong, code) => {
      answer = wrong;
      // Only silence is waited for: the others must have been heard, however busy the machine is.
      const far = { url, ...(code === 'deadline_exceeded' ? { timeoutMs: 300 } : {}) };
      await open(2, { candidates: candidatesWith(far) });
      const response = await chat();
      expect(await response.json()).toMatchObject({
        model: 'small',
        choices: [{ message: { content: 'From here.' } }],
      });
      expect([response.headers.get('x-route'), response.headers.get('x-route-reason')]).toEqual(['small', 'fallback']);
      const [entry, ...more] = await kept();
      expect(more).toEqual([]);
      expect(entry).toMatchObject({ model: 'small', response: 'From here.', routing: { model: 'small' }, error: null });
      // And where it is the safe default itself, its failure has a name.
      await open(0, { default: 'far', candidates: [{ ...CONFIG.candidates[2]!, ...far }] });
      const refused = await chat();
      const text = await refused.text();
      expect(JSON.parse(text)).toMatchObject({ error: { code } });
      expect(refused.status).toBe({ remote_failed: 502, overloaded: 503, deadline_exceeded: 504 }[code]);
      expect(text).not.toContain(FAR_KEY);
    },
  );

  test('[SR2] that nobody can connect to is replaced, and left alone for a while', async () => {
    await open(2, { candidates: CONFIG.candidates }); // port 9
    expect((await chat()).headers.get('x-route-reason')).toBe('fallback');
    expect((await chat()).headers.get('x-route-reason')).toBe('safe-default');
  });

  test('[SR3] that breaks in the middle ends the stream with an error: what was said cannot be taken back', async () => {
    answer = events(chunk({ content: 'From ' }));
    await open(2);
    const text = await (await chat({ stream: true })).text();
    expect(text).toContain('From ');
    expect(text).toContain('remote_failed');
    expect(text).not.toContain('From here');
    expect((await kept())[0]).toMatchObject({ model: 'far', error: { code: 'remote_failed' } });
  });

  test('[SR3] is left when the client leaves', async () => {
    const closed = new Promise<void>((resolve) => {
      answer = (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(chunk({ content: 'From ' }));
        response.on('close', resolve);
      };
    });
    await open(2);
    const controller = new AbortController();
    const response = await chat({ stream: true }, controller.signal);
    const reader = response.body!.getReader();
    await reader.read();
    await reader.cancel();
    await closed;
  });

  test('[SR4] is not asked for what only a model here can do', async () => {
    await open(2);
    const response = await chat({ logprobs: true });
    expect([response.status, response.headers.get('x-route')]).toEqual([200, 'small']);
    expect(heard).toEqual([]);
  });
});

test('[SR5] who would answer is told without asking anybody', async () => {
  await open(1);
  const response = await server.fetch(
    new Request('http://localhost/v1/route', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: 'where is the blue whale?' }),
    }),
  );
  expect(await response.json()).toMatchObject({ object: 'route', candidate: 'large', policy: 'always large', version: 1, reason: 'fixed' }); // prettier-ignore
  expect([heard, spoken.requests]).toEqual([[], []]);
});

test('[SR5] the name that chooses is in the list of models, and can be counted for', async () => {
  await open(2);
  const list = (await (await server.fetch(new Request('http://localhost/v1/models'))).json()) as {
    data: { id: string }[];
  };
  expect(list.data.map(({ id }) => id)).toEqual(['small', 'large', 'auto']);
  expect((await post('/v1/messages/count_tokens', { messages })).status).toBe(200);
  expect(heard).toEqual([]);
});

test('[SR6] a model that is named is asked, and nobody chooses', async () => {
  await open(2);
  const response = await chat({ model: 'small' });
  expect([response.status, response.headers.get('x-route')]).toEqual([200, null]);
  expect((await kept())[0]).toMatchObject({ model: 'small', routing: null, latency: { routingMs: 0 } });
});

test('[SR7] what people say of routed answers moves the router, and moves it back', async () => {
  await open(0);
  const loop = createRouterLoop(memory, routing, {
    trainRouter: async (job) => trainRouter(job, memory.services.sha256),
    cancel: async () => {},
  });
  const trajectories = createTrajectories(memory.store, memory.services);
  let count = 0;
  const tell = async (candidate: string, score: number): Promise<void> => {
    const requestId = `0199a0b4-7c00-7000-8000-${(++count).toString(16).padStart(12, '0')}`;
    const state = { candidate, similarities: [], load: 0, latencyMs: [] };
    await trajectories.add('local', {
      requestId, sessionId: null, userId: null, model: candidate, createdMs: Date.now() - 1000 + count, query: `question ${count % 7} of many`, prompt: null,
      answer: 'a', steps: [], parameters: { propensity: 1 },
      route: state, retrieved: [], quality: null, latencyMs: 1, numOutputTokens: 1, embedding: null, space: null,
    }); // prettier-ignore
    await trajectories.rate('local', { requestId, score });
  };
  const routeOf = async (): Promise<string | null> => (await chat()).headers.get('x-route');
  expect(await routeOf()).toBe('small');
  for (let i = 0; i < 40; i++) await tell('far', 1);
  await loop.run();
  expect(await routeOf()).toBe('far');
  for (let i = 0; i < 40; i++) await tell('far', 0);
  await loop.run();
  expect(await routeOf()).toBe('small');
});

test('[SR8] a rollback of the router policy over HTTP changes who answers the next request', async () => {
  await open(0);
  await serveConstant(memory, 'local', routing.config, { candidate: 2, confidence: 0.95 });
  const routeOf = async (): Promise<string | null> => (await chat()).headers.get('x-route');
  expect(await routeOf()).toBe('far');
  const policyOf = async (action: string, body: object) =>
    (await server.fetch(new Request(`http://localhost/admin/memory/policies/${action}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }))).json(); // prettier-ignore
  expect(await policyOf('list', { policyType: 'router' })).toMatchObject({
    policies: [{ policyVersion: 2, parameters: { version: 2, winner: 'always far' } }],
  });
  expect(await policyOf('rollback', { policyType: 'router', toVersion: 1 })).toMatchObject({
    policy: { policyVersion: 3, parameters: { version: 1, winner: 'always small' } },
  });
  expect(await routeOf()).toBe('small');
  await policyOf('rollback', { policyType: 'router', toVersion: 2 });
  expect(await routeOf()).toBe('far');
});

test('[SR9] ratings of a temperature set by clients choose it for requests that set none; a rollback ends that', async () => {
  await open(2);
  const loop = createRouterLoop(memory, routing, {
    trainRouter: async (job) => trainRouter(job, memory.services.sha256),
    cancel: async () => {},
  });
  const trajectories = createTrajectories(memory.store, memory.services);
  for (let n = 1; n <= 80; n++) {
    const isCold = n % 2 === 0;
    const parameters = { propensity: 1, temperature: isCold ? 0.1 : 1, topP: 1 };
    const route = { candidate: 'far', similarities: [], load: 0, latencyMs: [] };
    const one = trajectoryFixture(n, { model: 'far', createdMs: Date.now() - 1000 + n, query: `question ${n % 7}`, prompt: null, parameters, route, embedding: null, space: null }); // prettier-ignore
    await trajectories.add('local', one);
    const score = isCold === (n % 10 !== 0) ? 1 : 0;
    await trajectories.rate('local', { requestId: one.requestId, score });
  }
  const sampled = async (body: object = {}): Promise<unknown> => {
    heard.length = 0;
    await (await chat(body)).text();
    return heard[0]!.body['temperature'];
  };
  expect(await sampled()).toBe(0.7);
  const { version } = await loop.train('local', 'background');
  expect(version).toMatchObject({ isAccepted: true, contents: { sampling: [{ candidate: 'far', temperature: 0.1 }] } });
  expect([await sampled(), await sampled({ temperature: 0.6 }), await sampled({ top_p: 0.5 })]).toEqual([
    0.1, 0.6, 0.7,
  ]);
  const told = (await (await post('/v1/route', { model: undefined, prompt: 'where is it?' })).json()) as object;
  expect(told).toMatchObject({ contextSize: 512, sampling: { temperature: 0.1, topP: 1, source: 'learned', numSamples: 40 } }); // prettier-ignore
  const explain = async (body: object) => (await post('/v1/route', { model: undefined, prompt: 'x', ...body })).json();
  expect(await explain({ temperature: 0.6 })).toMatchObject({ sampling: { temperature: 0.6, source: 'request' } });
  expect(await explain({ max_tokens: 1000 })).toMatchObject({ contextSize: 1024 });
  // The Responses API repeats the sampling that was used.
  const respond = async (body: object) => (await post('/v1/responses', { input: 'where is it?', ...body })).json();
  expect(await respond({})).toMatchObject({ temperature: 0.1, top_p: 1 });
  expect(await respond({ top_p: 0.5 })).toMatchObject({ temperature: 0.7, top_p: 0.5 });
  await memory.policies.rollback('local', 'router', 1);
  expect(await sampled()).toBe(0.7);
});
