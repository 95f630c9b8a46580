import { expect, test } from 'vitest';
import { createManualClock, settle } from '../../test/support/manual-clock.ts';
import { createMemoryKeys, createTestServer, entryOf } from '../../test/support/test-server.ts';
import { createToyRuntime } from '../../test/support/toy-runtime.ts';
import { createTestMemory } from '../memory/operations/harness.contract.ts';
import type { Model } from '../runtime/model.ts';
import { createKeyStore } from './keys/key-store.ts';

const get = (path: string, token?: string): Request =>
  new Request(`http://localhost${path}`, { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } });

test('[K5] a server without keys is open until one is created; then every request needs one at once', async () => {
  const { model } = await createToyRuntime();
  const { fetch } = createTestServer([entryOf('toy', async () => model)]);
  expect((await fetch(get('/v1/models'))).status).toBe(200);
  const made = await fetch(
    new Request('http://localhost/admin/keys', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'first', tenant: 'alice', scopes: ['admin'] }),
    }),
  );
  expect(made.status).toBe(201);
  const { token, id } = (await made.json()) as { token: string; id: string };
  expect((await fetch(get('/v1/models'))).status).toBe(401);
  const list = await (await fetch(get('/admin/keys', token))).text();
  expect(JSON.parse(list)).toEqual({
    object: 'list',
    data: [{ id, object: 'api_key', name: 'first', tenant: 'alice', scopes: ['admin'], created: 1, revoked: null }],
  });
  expect(list).not.toContain(token);
});

test('[K5] a key that another process creates closes an open server at once', async () => {
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  const { fetch, services } = createTestServer([], { keys });
  expect((await fetch(get('/v1/models'))).status).toBe(200);
  const { token } = await keys.create({ name: 'first', tenant: 'alice', scopes: ['admin'] });
  expect(services.guard.isOpen).toBe(false);
  expect((await fetch(get('/v1/models'))).status).toBe(401);
  expect((await fetch(get('/v1/models', token))).status).toBe(200);
});

test('/health is 503 while the first model is loading; /props never shows paths of files', async () => {
  const { model } = await createToyRuntime();
  let finish = (_model: Model): void => {};
  const levels: string[] = [];
  const logger = { log: (level: string) => void levels.push(level) };
  const { fetch, services } = createTestServer(
    [entryOf('toy', () => new Promise<Model>((resolve) => (finish = resolve)))],
    { logger },
  );
  const health = async (): Promise<number> => (await fetch(get('/health'))).status;
  expect(await health()).toBe(200); // a model that was never requested is no failure
  const lease = services.models.acquire('toy', { signal: new AbortController().signal, waitMs: 1000 });
  await settle();
  expect(await health()).toBe(503);
  expect(new Set(levels)).toEqual(new Set(['info'])); // only warnings are printed without --log
  finish(model);
  (await lease).release();
  expect(await health()).toBe(200);
  const props = await (await fetch(get('/props'))).text();
  expect(JSON.parse(props)).toMatchObject({ is_open: true, models: [{ id: 'toy', state: 'loaded' }] });
  expect(props).not.toContain('toy.gguf');
});

test('/health stays 200 while a model is loaded again', async () => {
  const loads: (() => void)[] = [];
  const load = async () => {
    await new Promise<void>((resolve) => loads.push(resolve));
    return (await createToyRuntime()).model;
  };
  const { fetch, services } = createTestServer([entryOf('toy', load)]);
  const acquire = () => services.models.acquire('toy', { signal: new AbortController().signal, waitMs: 10_000 });
  const health = async (): Promise<number> => (await fetch(get('/health'))).status;
  const first = acquire();
  expect(await health()).toBe(503);
  loads[0]!();
  (await first).release();
  await services.models.unload('toy', { force: false, drainMs: 0 });
  const again = acquire();
  expect([services.models.find('toy')!.state, await health()]).toEqual(['loading', 200]);
  loads[1]!();
  (await again).release();
});

test('[MR5] /health and /metrics report a degraded memory while the server keeps answering', async () => {
  const { memory } = await createTestMemory();
  let reason: string | null = null;
  const { policies, sessions } = memory;
  const { fetch } = createTestServer([], { memory: { ...memory, policies, sessions, degraded: () => reason } });
  const health = async (): Promise<unknown> => {
    const response = await fetch(get('/health'));
    return [response.status, await response.json()];
  };
  const gauge = async (): Promise<string | undefined> =>
    (await (await fetch(get('/metrics'))).text()).split('\n').find((line) => line.startsWith('ruvllm_memory_degraded'));
  expect([await health(), await gauge()]).toEqual([[200, { status: 'ok' }], 'ruvllm_memory_degraded 0']);
  reason = 'it cannot be opened: connect ECONNREFUSED 10.0.0.7:5432';
  expect([await health(), await gauge()]).toEqual([[200, { status: 'ok', degraded: ['memory'] }], 'ruvllm_memory_degraded 1']); // prettier-ignore
  const without = createTestServer([]);
  expect(await (await without.fetch(get('/metrics'))).text()).not.toContain('ruvllm_memory_degraded');
});

test('[M3] a request that waits too long for its model gets a retry time', async () => {
  const clock = createManualClock();
  const { fetch } = createTestServer([entryOf('toy', () => new Promise<Model>(() => {}))], { clock });
  const answer = fetch(
    new Request('http://localhost/v1/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'toy', prompt: 'a' }),
    }),
  );
  await settle();
  clock.advance(120_000);
  const response = await answer;
  expect(response.status).toBe(503);
  expect(response.headers.get('retry-after')).toBe('2');
});

test('[S2] the OpenAPI document contains every route with its scope', async () => {
  const { fetch } = createTestServer([]);
  const { paths } = (await (await fetch(get('/openapi.json'))).json()) as {
    paths: Record<string, Record<string, { 'x-scope': string; requestBody?: object }>>;
  };
  expect(paths['/v1/models/{id}']!['get']).toMatchObject({ 'x-scope': 'read' });
  expect(paths['/v1/chat/completions']!['post']!.requestBody).toMatchObject({
    content: { 'application/json': { schema: { required: ['messages'], additionalProperties: true } } },
  });
  expect(paths['/admin/keys']!['post']!.requestBody).toMatchObject({
    content: { 'application/json': { schema: { additionalProperties: false } } },
  });
});

test('an administrator lists and deletes the sessions of a tenant', async () => {
  const { model } = await createToyRuntime();
  const { fetch } = createTestServer([entryOf('toy', async () => model)]);
  await fetch(
    new Request('http://localhost/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'toy',
        messages: [{ role: 'user', content: 'hi' }],
        session: 's/1',
        max_tokens: 2,
      }),
    }),
  );
  const list = async (tenant: string): Promise<unknown[]> =>
    ((await (await fetch(get(`/admin/sessions/${tenant}`))).json()) as { data: unknown[] }).data;
  expect(await list('local')).toMatchObject([{ id: 's/1', model: 'toy', num_turns: 1 }]);
  expect(await list('other')).toEqual([]);
  const forget = (tenant: string): Promise<Response> =>
    fetch(new Request(`http://localhost/admin/sessions/${tenant}/s%2F1`, { method: 'DELETE' }));
  expect((await forget('other')).status).toBe(404);
  expect((await forget('local')).status).toBe(200);
  expect(await list('local')).toEqual([]);
});
