import { describe, expect, test } from 'vitest';
import { RuvLLMError } from '../core/errors.ts';
import { createMemoryKeys, createTestServer, entryOf } from '../../test/support/test-server.ts';
import { createToyRuntime } from '../../test/support/toy-runtime.ts';
import { createKeyStore } from './keys/key-store.ts';
import type { LogFields } from './logger.ts';
import { ROUTES } from './routes/table.ts';

const request = (method: string, path: string, headers: Record<string, string> = {}): Request =>
  new Request(`http://localhost${path}`, { method, headers });

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const allowOf = (path: string): string[] => {
  const methods: string[] = ROUTES.filter((route) => route.path === path).map(({ method }) => method);
  return [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'];
};
const pathOf = (pattern: string): string => pattern.replaceAll(/:\w+(?:\{[^}]*\})?/g, 'x');

describe('[S6] methods', () => {
  test.each([...new Set(ROUTES.map(({ path }) => path))])('%s says what it can be asked with', async (pattern) => {
    const { fetch } = createTestServer([]);
    const allow = allowOf(pattern);
    const isAnthropic = pattern.startsWith('/v1/messages');
    for (const method of METHODS.filter((one) => !allow.includes(one))) {
      const response = await fetch(request(method, pathOf(pattern)));
      expect(response.status, method).toBe(405);
      expect(response.headers.get('allow'), method).toBe(allow.join(', '));
      if (method === 'HEAD') continue;
      const message = expect.stringContaining(`with ${method}, only with ${allow.join(', ')}`);
      expect(await response.json()).toEqual(
        isAnthropic
          ? {
              type: 'error',
              error: { type: 'invalid_request_error', message },
              request_id: response.headers.get('request-id'),
            }
          : { error: { message, type: 'invalid_request_error', param: null, code: 'method_not_allowed' } },
      );
    }
    const options = await fetch(request('OPTIONS', pathOf(pattern)));
    expect([options.status, options.headers.get('allow')]).toEqual([204, allow.join(', ')]);
  });

  test('HEAD is GET without a body', async () => {
    const { fetch } = createTestServer([]);
    for (const path of ['/health', '/v1/models', '/openapi.json', '/metrics', '/v1/responses/none', '/nope']) {
      const get = await fetch(request('GET', path));
      const head = await fetch(request('HEAD', path));
      expect([head.status, head.headers.get('content-type')], path).toEqual([
        get.status,
        get.headers.get('content-type'),
      ]);
      expect(head.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
      expect(await head.text()).toBe('');
    }
  });

  test('without a key the methods are not told', async () => {
    const { fetch } = createTestServer([], { isOpen: false });
    for (const method of ['PUT', 'OPTIONS']) {
      const response = await fetch(request(method, '/v1/models'));
      expect([response.status, response.headers.get('allow')]).toEqual([401, null]);
    }
  });
});

test("[S2] on paths of no format an Anthropic client is answered in its own, others in OpenAI's", async () => {
  const { fetch } = createTestServer([]);
  const version = { 'anthropic-version': '2023-06-01' };
  for (const path of ['/nope', '/v1/models/nope', '/v1/complete']) {
    const body = await (await fetch(request('GET', path, version))).json();
    expect(body, path).toMatchObject({ type: 'error', error: { type: 'not_found_error' } });
    expect(await (await fetch(request('GET', path))).json()).toHaveProperty('error.code');
  }
  const batches = await fetch(request('POST', '/v1/messages/batches'));
  expect(await batches.json()).toMatchObject({ type: 'error', error: { type: 'not_found_error' } });
  expect(await (await fetch(request('POST', '/v1/messagesx'))).json()).toMatchObject({
    error: { code: 'unknown_url' },
  });
});

describe('[S2] names of requests', () => {
  const lines: LogFields[] = [];
  const logger = { log: (_level: string, _event: string, fields: LogFields) => void lines.push(fields) };

  test("a client's own name is logged and sent back beside ours, never in its place", async () => {
    const { fetch } = createTestServer([], { logger });
    for (const header of ['x-client-request-id', 'x-request-id']) {
      const response = await fetch(request('GET', '/health', { [header]: 'trace/42:a' }));
      expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
      expect(response.headers.get('x-client-request-id')).toBe('trace/42:a');
      expect(lines.at(-1)).toMatchObject({ clientRequestId: 'trace/42:a' });
    }
  });

  test('what is no name is neither', async () => {
    const { fetch } = createTestServer([], { logger });
    for (const id of ['', 'two words', 'x'.repeat(513), 'ü', 'a\tb']) {
      const response = await fetch(request('GET', '/health', { 'x-client-request-id': id }));
      expect([response.status, response.headers.get('x-client-request-id')], id).toEqual([200, null]);
      expect(lines.at(-1)).not.toHaveProperty('clientRequestId');
    }
  });
});

test('[S4] what a client of the API can send is used, has no effect by name, or is refused by name', async () => {
  const { model } = await createToyRuntime();
  const { fetch } = createTestServer([entryOf('toy', async () => model)]);
  const ask = async (path: string, more: object): Promise<[number, string | null, string | null]> => {
    const response = await fetch(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'toy', ...more }),
      }),
    );
    const { error } = (await response.json()) as { error?: { code: string; param: string } };
    return [response.status, error?.code ?? null, error?.param ?? null];
  };
  const chat = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 1 };
  for (const more of [
    { store: true },
    { metadata: { a: 'b' } },
    { service_tier: 'flex' },
    { verbosity: 'low' },
    { user: 'someone' },
    { safety_identifier: 'x', prompt_cache_key: 'y', prompt_cache_retention: '24h', prompt_cache_options: {} },
    { prediction: { type: 'content', content: 'hi' } },
    { modalities: ['text'], audio: null, functions: null },
  ]) {
    expect(await ask('/v1/chat/completions', { ...chat, ...more }), JSON.stringify(more)).toEqual([200, null, null]);
  }
  for (const [field, value] of Object.entries({
    audio: { voice: 'alloy', format: 'wav' },
    functions: [{ name: 'f' }],
    function_call: 'auto',
    web_search_options: {},
    moderation: {},
  })) {
    expect(await ask('/v1/chat/completions', { ...chat, [field]: value })).toEqual([400, 'unsupported', field]);
  }
  expect(await ask('/v1/chat/completions', { ...chat, modalities: ['audio'] })).toEqual([
    400,
    'invalid_value',
    'modalities',
  ]);
  const text = { prompt: 'hi', max_tokens: 1 };
  expect(await ask('/v1/completions', { ...text, best_of: 1, suffix: '', echo: true, user: 'x' })).toEqual([
    200,
    null,
    null,
  ]);
  for (const [more, param] of [
    [{ best_of: 3 }, 'best_of'],
    [{ suffix: 'end' }, 'suffix'],
    [{ echo: true, logprobs: 1 }, 'logprobs'],
    [{ echo: true, max_tokens: 0 }, 'max_tokens'],
    [{ logprobs: 6 }, 'logprobs'],
    [{ stream_options: { include_usage: true } }, 'stream_options'],
  ] as const) {
    expect(await ask('/v1/completions', { ...text, ...more })).toEqual([400, 'invalid_value', param]);
  }
});

test('[S5] a refusal is no error in the log, however high its status; a bug is one, with the place it is at', async () => {
  const lines: { level: string; fields: LogFields }[] = [];
  const logger = { log: (level: string, _event: string, fields: LogFields) => void lines.push({ level, fields }) };
  let failure = new Error('a bug');
  const { fetch, services } = createTestServer([], {
    logger,
    feedback: {
      async put() {
        throw failure;
      },
    },
  });
  const ask = (path: string, body: object): Promise<Response> =>
    fetch(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
  services.requests.add({ requestId: 'known', tenant: 'local', model: 'toy', createdMs: 0 });
  expect((await ask('/v1/feedback', { request_id: 'known', score: 1 })).status).toBe(500);
  expect(lines.at(-1)).toMatchObject({
    level: 'error',
    fields: { reason: expect.stringContaining('dispatch.test.ts') },
  });
  failure = new RuvLLMError('overloaded', '8 requests are waiting; the limit is 8');
  expect((await ask('/v1/feedback', { request_id: 'known', score: 1 })).status).toBe(503);
  expect(lines.at(-1)).toMatchObject({ level: 'warn', fields: { code: 'overloaded' } });
  expect(lines.at(-1)!.fields).not.toHaveProperty('reason');
  services.admission.close();
  expect((await ask('/v1/completions', { model: 'toy', prompt: 'a' })).status).toBe(503);
  expect(lines.at(-1)).toMatchObject({ level: 'warn', fields: { code: 'shutting_down' } });
  expect(lines.at(-1)!.fields).not.toHaveProperty('reason');
  expect((await fetch(request('GET', '/health'))).status).toBe(503);
  expect(lines.at(-1)!.level).toBe('warn');
});

test('[S5] the log says whose key was refused, and not its secret', async () => {
  const lines: LogFields[] = [];
  const logger = { log: (_level: string, _event: string, fields: LogFields) => void lines.push(fields) };
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  const { key, token } = await keys.create({ name: 'laptop', tenant: 'alice', scopes: ['inference'] });
  const { fetch } = createTestServer([], { logger, keys, isOpen: false });
  const response = await fetch(request('GET', '/admin/keys', { authorization: `Bearer ${token}` }));
  expect(response.status).toBe(403);
  expect(lines.at(-1)).toMatchObject({ status: 403, tenant: 'alice', key: key.id, code: 'insufficient_scope' });
  expect(JSON.stringify(lines)).not.toContain(token);
  expect(await response.text()).not.toContain(key.id);
  // Nobody is named by a token that is not valid.
  await fetch(request('GET', '/admin/keys', { authorization: `Bearer ${token.slice(0, -1)}` }));
  expect(lines.at(-1)).toMatchObject({ status: 401, tenant: '', key: null });
});

test('[K7] what tells of all tenants is not for keys of inference only', async () => {
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  const { fetch } = createTestServer([], { keys, isOpen: false });
  for (const [scopes, status] of [
    [['inference'], 403],
    [['read-only'], 200],
    [['admin'], 200],
    [['inference', 'read-only'], 200],
  ] as const) {
    const { token } = await keys.create({ name: 'k', tenant: 'alice', scopes });
    for (const path of ['/metrics', '/slots']) {
      const response = await fetch(request('GET', path, { authorization: `Bearer ${token}` }));
      expect(response.status, `${path} with ${scopes.join()}`).toBe(status);
    }
  }
});
