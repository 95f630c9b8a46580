import { expect, test } from 'vitest';
import { createTestServer, entryOf } from '../../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../../test/support/toy-runtime.ts';

async function setUp() {
  const { model } = await createToyRuntime();
  const entries = ['a', 'b', 'c'].map((id) => entryOf(id, async () => model, { aliases: [`${id}-alias`] }));
  const server = createTestServer(entries);
  const get = async (path: string, headers: Record<string, string> = { 'anthropic-version': '2023-06-01' }) => {
    const response = await server.fetch(new Request(`http://localhost${path}`, { headers }));
    return { status: response.status, body: (await response.json()) as any };
  };
  return { get, server, model };
}

test('[S7] lists models in the format of the client', async () => {
  const { get, server, model } = await setUp();
  const lease = await server.services.models.acquire('b', { signal: new AbortController().signal, waitMs: 1000 });
  const { maxContext, displayName } = model.modelInfo();
  const info = (id: string, size: number | null): object => ({
    type: 'model',
    id,
    display_name: size === null ? id : displayName,
    created_at: '2023-11-14T22:13:20.000Z',
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: null,
    capabilities: null,
    max_input_tokens: size,
    max_tokens: size,
  });
  expect(await get('/v1/models')).toEqual({
    status: 200,
    body: {
      data: [info('a', null), info('b', maxContext), info('c', null)],
      has_more: false,
      first_id: 'a',
      last_id: 'c',
    },
  });
  expect(await get('/v1/models/b-alias')).toEqual({ status: 200, body: info('b', maxContext) });
  expect((await get('/v1/models/nope')).body).toMatchObject({ type: 'error', error: { type: 'not_found_error' } });
  expect((await get('/v1/models', {})).body).toMatchObject({ object: 'list', data: [{ object: 'model' }, {}, {}] });
  lease.release();
});

test('[S7] pages in both directions', async () => {
  const { get } = await setUp();
  const ids = async (query: string): Promise<unknown> => {
    const { body } = await get(`/v1/models?${query}`);
    return [body.data.map(({ id }: { id: string }) => id), body.has_more, body.first_id, body.last_id];
  };
  expect(await ids('limit=2')).toEqual([['a', 'b'], true, 'a', 'b']);
  expect(await ids('limit=2&after_id=b')).toEqual([['c'], false, 'c', 'c']);
  expect(await ids('limit=1&before_id=c')).toEqual([['b'], true, 'b', 'b']);
  expect(await ids('before_id=c')).toEqual([['a', 'b'], false, 'a', 'b']);
  expect(await ids('after_id=c')).toEqual([[], false, null, null]);
  for (const query of ['limit=0', 'limit=1001', 'after_id=x']) {
    expect(await get(`/v1/models?${query}`)).toMatchObject({
      status: 400,
      body: { type: 'error', error: { type: 'invalid_request_error' } },
    });
  }
});
