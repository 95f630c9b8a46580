// Unknown fields: ignored and named, or rejected by a strict server.
import { describe, expect, test } from 'vitest';
import { createTestServer, entryOf } from '../../test/support/test-server.ts';
import { createToyRuntime } from '../../test/support/toy-runtime.ts';
import type { ServerOptions } from './app.ts';
import type { LogFields } from './logger.ts';
import { CALLS } from './routes/route-calls.contract.ts';
import { ROUTES } from './routes/table.ts';

const { model } = await createToyRuntime();

function setUp(options: Partial<ServerOptions> = {}) {
  const lines: LogFields[] = [];
  const logger = { log: (_level: string, _event: string, fields: LogFields) => void lines.push(fields) };
  const { fetch } = createTestServer([entryOf('toy', async () => model)], { logger, ...options });
  const post = (path: string, body: object): Promise<Response> =>
    fetch(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
  return { post, lines };
}

const chat = { model: 'toy', messages: [{ role: 'user', content: 'hi' }], max_tokens: 1 };
const loaded = await Promise.all(ROUTES.map(async (route) => ({ ...route, ...(await route.load()) })));
const withBody = loaded.filter(({ method, path, body }) => method === 'POST' && body !== undefined && !path.includes(':')); // prettier-ignore
const liberal = withBody.filter(({ ignoresUnknownFields }) => ignoresUnknownFields === true);

describe('[S4] unknown fields', () => {
  test('are ignored by the routes of inference and of Ollama only', () => {
    // Some routes have a second path without /v1.
    const paths = liberal.map(({ path }) => path);
    expect(paths.filter((path) => !paths.includes(`/v1${path}`) && !path.startsWith('/api/')).sort()).toEqual([
      '/apply-template',
      '/completion',
      '/detokenize',
      '/infill',
      '/tokenize',
      '/v1/batches',
      '/v1/chat/completions',
      '/v1/completions',
      '/v1/conversations',
      '/v1/embeddings',
      '/v1/messages',
      '/v1/messages/count_tokens',
      '/v1/rerank',
      '/v1/reranking',
      '/v1/responses',
      '/v1/responses/input_tokens',
      '/v1/route',
    ]);
  });

  // Without a library of models, some of Ollama's routes refuse before they read the body.
  // Batches need a memory, and have a test of their own.
  const readable = liberal.filter(({ path }) => CALLS[`POST ${path}`]!.status !== 501 && path !== '/v1/batches');
  test.each(readable.map(({ path }) => path))('%s names them in a header and in the log', async (path) => {
    const { post, lines } = setUp();
    const { body, status } = CALLS[`POST ${path}`]!;
    const response = await post(path, { ...body, surprise: 1 });
    expect([response.status, response.headers.get('x-ignored-fields')]).toEqual([status, 'surprise']);
    expect(lines.at(-1)).toMatchObject({ ignoredFields: 'surprise' });
    const strict = await setUp({ strict: true }).post(path, { ...body, surprise: 1 });
    expect([strict.status, strict.headers.get('x-ignored-fields')]).toEqual([400, null]);
    expect(JSON.stringify(await strict.json())).toContain("unknown field 'surprise'");
  });

  // Messages of later versions of MCP may have further fields.
  const strict = withBody.filter((route) => !liberal.includes(route) && route.path !== '/mcp');
  test.each(strict.map(({ path }) => path))('%s rejects them', async (path) => {
    const { post } = setUp();
    const response = await post(path, { ...CALLS[`POST ${path}`]?.body, surprise: 1 });
    expect(response.headers.get('x-ignored-fields')).toBeNull();
    expect(response.status).toBeGreaterThanOrEqual(400);
  });

  test('are named with their place; those with a value of null, too', async () => {
    const { post } = setUp();
    const part = { type: 'text', text: 'hi', role: 'user' };
    const body = {
      ...chat,
      messages: [{ role: 'user', content: 'a' }, { role: 'assistant', content: [part] }, ...chat.messages],
      tools: [{ type: 'function', function: { name: 'f', cache_control: {} } }],
      tool_choice: 'none',
      nothing: null,
    };
    const response = await post('/v1/chat/completions', body);
    expect(response.status).toBe(200);
    expect(response.headers.get('x-ignored-fields')).toBe(
      'nothing, messages[1].content[0].role, tools[0].function.cache_control',
    );
  });

  test('have safe names of a bounded length in the header', async () => {
    const { post } = setUp();
    const names = Array.from({ length: 100 }, (_, index) => `${'x'.repeat(60)}${index}`);
    const bodies = [{ 'a\r\nset-cookie: b': 1, 'ü, y': 1 }, Object.fromEntries(names.map((name) => [name, 1]))];
    const [odd, many] = await Promise.all(bodies.map((more) => post('/v1/chat/completions', { ...chat, ...more })));
    expect(odd!.headers.get('x-ignored-fields')).toBe('a??set-cookie??b, ???y');
    expect(odd!.headers.get('set-cookie')).toBeNull();
    expect(many!.headers.get('x-ignored-fields')).toMatch(/^x{60}0, .*, and \d+ more$/);
    expect(many!.headers.get('x-ignored-fields')!.length).toBeLessThan(1100);
  });

  test('of one request are not those of the next, not even after an error', async () => {
    const { post } = setUp();
    const failed = await post('/v1/chat/completions', { ...chat, surprise: 1, temperature: 9 });
    expect([failed.status, failed.headers.get('x-ignored-fields')]).toEqual([400, null]);
    expect((await post('/v1/chat/completions', chat)).headers.get('x-ignored-fields')).toBeNull();
    const strict = await post('/v1/feedback', { request_id: 'x', surprise: 1 });
    expect(await strict.json()).toMatchObject({ error: { code: 'unknown_parameter', param: 'surprise' } });
  });

  test('do not enter any prototype', async () => {
    const { post } = setUp();
    const body = JSON.stringify(chat).replace('{', '{"__proto__":{"isAdmin":true},"constructor":{},');
    const response = await post('/v1/chat/completions', JSON.parse(body) as object);
    expect(response.headers.get('x-ignored-fields')).toBe('__proto__, constructor');
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });
});

describe('models', () => {
  const two = [entryOf('toy', async () => model), entryOf('other', async () => model)];
  const serve = (entries: typeof two, modelFallback = false) => {
    const { fetch } = createTestServer(entries, { modelFallback });
    return async (path: string, body: object): Promise<[number, unknown]> => {
      const response = await fetch(
        new Request(`http://localhost${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }),
      );
      const answer = (await response.json()) as { model?: string; error?: { code?: string; type: string } };
      return [response.status, answer.model ?? answer.error?.code ?? answer.error?.type];
    };
  };
  const requests = [
    ['/v1/chat/completions', { messages: chat.messages, max_tokens: 1 }],
    ['/v1/completions', { prompt: 'hi', max_tokens: 1 }],
    ['/v1/responses', { input: 'hi', max_output_tokens: 1 }],
    ['/v1/messages', { messages: chat.messages, max_tokens: 1 }],
    ['/v1/embeddings', { input: 'hi' }],
  ] as const;

  test.each(requests)('%s needs no name if one model is served', async (path, body) => {
    const ask = serve(two.slice(0, 1));
    expect(await ask(path, body)).toEqual([200, 'toy']);
    expect(await ask(path, { ...body, model: '' })).toEqual([200, 'toy']);
    expect((await serve(two)(path, body))[0]).toBe(400);
    expect((await ask(path, { ...body, model: 'gpt-4o' }))[0]).toBe(404);
  });

  test.each(requests)('%s answers with the first model for unknown names if the server may', async (path, body) => {
    const ask = serve(two, true);
    expect(await ask(path, { ...body, model: 'gpt-4o' })).toEqual([200, 'toy']);
    expect(await ask(path, { ...body, model: 'other' })).toEqual([200, 'other']);
  });
});
