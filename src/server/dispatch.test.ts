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
  test.each([...new Set(ROUTES.map(({ path }) => path))])('%s lists its methods', async (pattern) => {
    const { fetch } = createTestServer([]);
    const allow = allowOf(pattern);
    const isAnthropic = pattern.startsWith('/v1/messages');
    for (const method of METHODS.filter((one) => !allow.includes(one))) {
      const response = await fetch(request(method, pathOf(pattern)));
      expect(response.status, method).toBe(405);
      expect(response.headers.get('allow'), method).toBe(allow.join(', '));
      if (method === 'HEAD') continue;
      const message = expect.stringContaining(`does not support ${method}; use ${allow.join(', ')}`);
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

  test('hides the methods without a key', async () => {
    const { fetch } = createTestServer([], { isOpen: false });
    for (const method of ['PUT', 'OPTIONS']) {
      const response = await fetch(request(method, '/v1/models'));
      expect([response.status, response.headers.get('allow')]).toEqual([401, null]);
    }
  });
});

test("[S2] errors on paths of no format use Anthropic's format for its clients, else OpenAI's", async () => {
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

describe('[S2] request ids', () => {
  const lines: LogFields[] = [];
  const logger = { log: (_level: string, _event: string, fields: LogFields) => void lines.push(fields) };

  test("a client's id is logged and returned beside the server's id, never in its place", async () => {
    const { fetch } = createTestServer([], { logger });
    for (const header of ['x-client-request-id', 'x-request-id']) {
      const response = await fetch(request('GET', '/health', { [header]: 'trace/42:a' }));
      expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
      expect(response.headers.get('x-client-request-id')).toBe('trace/42:a');
      expect(lines.at(-1)).toMatchObject({ clientRequestId: 'trace/42:a' });
    }
  });

  test('an invalid client id is ignored', async () => {
    const { fetch } = createTestServer([], { logger });
    for (const id of ['', 'two words', 'x'.repeat(513), 'ü', 'a\tb']) {
      const response = await fetch(request('GET', '/health', { 'x-client-request-id': id }));
      expect([response.status, response.headers.get('x-client-request-id')], id).toEqual([200, null]);
      expect(lines.at(-1)).not.toHaveProperty('clientRequestId');
    }
  });
});

test('[S4] every field of the API is used, accepted without effect, or rejected by name', async () => {
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
    [{ echo: true, logprobs: 1, stream: true }, 'logprobs'],
    [{ max_tokens: 0 }, 'max_tokens'],
    [{ logprobs: 6 }, 'logprobs'],
    [{ stream_options: { include_usage: true } }, 'stream_options'],
  ] as const) {
    expect(await ask('/v1/completions', { ...text, ...more })).toEqual([400, 'invalid_value', param]);
  }
  // The toy model has no tokens for a gap.
  expect(await ask('/v1/completions', { ...text, suffix: 'end' })).toEqual([400, 'unsupported', 'suffix']);
});

test('[S4] the OpenAPI document marks accepted fields without effect, and the parser accepts them', async () => {
  const { model } = await createToyRuntime();
  const { fetch } = createTestServer([entryOf('toy', async () => model)]);
  const { paths } = (await (await fetch(request('GET', '/openapi.json'))).json()) as {
    paths: Record<string, Record<string, { requestBody?: { content: Record<string, { schema: Schema }> } }>>;
  };
  interface Schema {
    readonly properties?: Readonly<Record<string, { readonly type?: string; readonly description?: string }>>;
  }
  const messages = [{ role: 'user', content: 'hi' }];
  const openai = ['metadata', 'store', 'service_tier', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_retention', 'prompt_cache_options', 'verbosity']; // prettier-ignore
  const anthropic = ['service_tier', 'inference_geo', 'speed', 'diagnostics', 'user_profile_id', 'workspace_id', 'context_management']; // prettier-ignore
  for (const [path, body, expected] of [
    ['/v1/chat/completions', { messages, max_tokens: 1 }, openai.slice(2)],
    ['/v1/completions', { prompt: 'hi', max_tokens: 1 }, openai],
    [
      '/v1/responses',
      { input: 'hi', max_output_tokens: 1 },
      [...openai.slice(2, 7), 'stream_options', 'context_management'],
    ],
    ['/v1/messages', { messages, max_tokens: 1 }, anthropic],
    ['/v1/messages/count_tokens', { messages }, anthropic],
    ['/v1/embeddings', { input: 'hi' }, ['user']],
  ] as const) {
    const { properties = {} } = paths[path]!['post']!.requestBody!.content['application/json']!.schema;
    const names = Object.keys(properties).filter((name) => properties[name]!.description === 'accepted; has no effect');
    expect(names, path).toEqual(expected);
    for (const name of names) {
      const value = properties[name]!.type === 'object' ? {} : 'x';
      const headers = { 'content-type': 'application/json' };
      const text = JSON.stringify({ model: 'toy', ...body, [name]: value });
      const response = await fetch(new Request(`http://localhost${path}`, { method: 'POST', headers, body: text }));
      expect([response.status, path, name]).toEqual([200, path, name]);
    }
  }
});

test('[S5] logs rejected requests below error level, and bugs as errors with their stack', async () => {
  const lines: { level: string; fields: LogFields }[] = [];
  const logger = { log: (level: string, _event: string, fields: LogFields) => void lines.push({ level, fields }) };
  let failure = new Error('a bug');
  const { fetch, services } = createTestServer([], { logger });
  const feedback = {
    async feedback() {
      throw failure;
    },
  };
  Object.assign(services, { feedback });
  const ask = (path: string, body: object): Promise<Response> =>
    fetch(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
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
  expect(lines.at(-1)!.level).toBe('info');
});

test('[S5] logs the id of a rejected key, not its secret', async () => {
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
  // An invalid token identifies no tenant.
  await fetch(request('GET', '/admin/keys', { authorization: `Bearer ${token.slice(0, -1)}` }));
  expect(lines.at(-1)).toMatchObject({ status: 401, tenant: '', key: null });
});

test('[K7] inference keys cannot read data about all tenants', async () => {
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
