import { beforeEach, describe, expect, test } from 'vitest';
import { createMemoryKeys, createTestServer, type TestServer } from '../../../test/support/test-server.ts';
import { createTestMemory, type TestMemory } from '../../memory/operations/harness.contract.ts';
import { MEMORY_OPERATIONS, operationPath } from '../../memory/operations/index.ts';
import { createKeyStore } from '../keys/key-store.ts';

let remembered: TestMemory;
let server: TestServer;
let keys: ReturnType<typeof createKeyStore>;

beforeEach(async () => {
  remembered = await createTestMemory();
  keys = createKeyStore(createMemoryKeys(), () => 1000);
  server = createTestServer([], { keys, isOpen: false, memory: remembered.memory });
});

async function ask(
  path: string,
  body: unknown,
  token?: string,
  to = server,
): Promise<{ status: number; body: unknown }> {
  const response = await to.fetch(
    new Request(`http://localhost/admin/memory/${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(body),
    }),
  );
  return { status: response.status, body: await response.json() };
}
const keyOf = async (tenant: string, scope: 'inference' | 'admin' | 'read-only'): Promise<string> =>
  (await keys.create({ name: tenant, tenant, scopes: [scope] })).token;

describe('memory over HTTP', () => {
  test('[MR1] [K4] only the tenant that added a text finds it', async () => {
    const [alice, bob] = [await keyOf('alice', 'inference'), await keyOf('bob', 'inference')];
    const added = await ask('add', { text: 'alice lost her card', topic: 'cards' }, alice);
    expect(added).toMatchObject({ status: 200, body: { id: expect.any(String) as string } });
    const { id } = added.body as { id: string };
    expect(await ask('search', { text: 'lost card' }, alice)).toMatchObject({ body: { results: [{ id }] } });
    expect(await ask('search', { text: 'lost card' }, bob)).toMatchObject({ status: 200, body: { results: [] } });
    expect(await ask('remove', { ids: [id] }, bob)).toEqual({ status: 200, body: { numRemoved: 0 } });
    expect(await ask('export', {}, bob)).toEqual({ status: 200, body: { records: [], next: null } });
    expect(await ask('get', { id }, await keyOf('alice', 'read-only'))).toMatchObject({ status: 200 });
  });

  test('[MR1] a read-only key cannot write, and an inference key cannot administrate', async () => {
    const [reader, writer] = [await keyOf('alice', 'read-only'), await keyOf('alice', 'inference')];
    for (const operation of MEMORY_OPERATIONS) {
      const path = operationPath(operation).replace('/admin/memory/', '');
      const isForbidden = async (token: string) => (await ask(path, {}, token)).status === 403;
      expect([path, await isForbidden(reader), await isForbidden(writer)]).toEqual([
        path,
        operation.scope !== 'read',
        operation.scope === 'admin',
      ]);
    }
  });

  test('[MR2] only an administrator can name a tenant', async () => {
    const [root, bob] = [await keyOf('root', 'admin'), await keyOf('bob', 'inference')];
    await ask('add?tenant=alice', { text: 'lost card' }, root);
    expect(await ask('stats?tenant=alice', {}, root)).toMatchObject({ body: { tenant: 'alice', numVectors: 1 } });
    expect(await ask('stats', {}, root)).toMatchObject({ body: { tenant: 'root', numVectors: 0 } });
    for (const name of ['alice', 'nobody', '']) {
      expect(await ask(`stats?tenant=${name}`, {}, bob)).toMatchObject({
        status: 403,
        body: { error: { code: 'insufficient_scope', param: 'tenant' } },
      });
    }
    expect(await ask('stats?tenant=bob', {}, bob)).toMatchObject({ status: 200 });
    expect(await ask('stats?tenant=', {}, root)).toMatchObject({ status: 400, body: { error: { param: 'tenant' } } });
    expect(await ask('stats?tenant=ruvllm', {}, root)).toMatchObject({ status: 400 });
    expect(await ask('tenants/erase?tenant=alice', { confirm: 'root' }, root)).toMatchObject({ status: 400 });
    expect(await ask('tenants/erase?tenant=alice', { confirm: 'alice' }, root)).toMatchObject({ status: 200 });
    expect(await ask('stats?tenant=alice', {}, root)).toMatchObject({ body: { numVectors: 0 } });
  });

  test('[MR3] without a memory each operation is a 501, after the key check', async () => {
    const bare = createTestServer([], { keys, isOpen: false });
    const root = await keyOf('root', 'admin');
    for (const operation of MEMORY_OPERATIONS) {
      const path = operationPath(operation).replace('/admin/memory/', '');
      expect(await ask(path, {}, root, bare)).toMatchObject({
        status: 501,
        body: { error: { code: 'not_implemented', message: expect.stringContaining('--memory') as string } },
      });
      expect((await ask(path, {}, undefined, bare)).status).toBe(401);
    }
  });

  test('[S4] invalid input is a 400 that names the field', async () => {
    const alice = await keyOf('alice', 'inference');
    const wrong = async (path: string, body: unknown) => (await ask(path, body, alice)).body;
    expect(await wrong('search', { text: 'x', filter: [{ field: 'colour', is: '=', value: 1 }] })).toMatchObject({
      error: { code: 'invalid_value', message: expect.stringContaining('"colour"') as string },
    });
    expect(await wrong('add', { text: 'x', colour: 'red' })).toMatchObject({ error: { param: 'colour' } });
    expect(await wrong('search', { text: 'x', k: 1_000_000 })).toMatchObject({ error: { param: 'k' } });
    expect(await wrong('search', [])).toMatchObject({ error: { type: 'invalid_request_error' } });
  });

  test('[MR1] the OpenAPI document contains the input of each operation', async () => {
    const response = await server.fetch(
      new Request('http://localhost/openapi.json', {
        headers: { authorization: `Bearer ${await keyOf('alice', 'read-only')}` },
      }),
    );
    const { paths } = (await response.json()) as { paths: Record<string, { post: { requestBody: object } }> };
    expect(paths['/admin/memory/tenants/erase']!.post.requestBody).toEqual({
      required: true,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            properties: {
              confirm: { type: 'string', minLength: 1, maxLength: 1024 },
              userId: { type: 'string', minLength: 1, maxLength: 256 },
              requestId: { type: 'string', minLength: 1, maxLength: 256 },
            },
            required: ['confirm'],
            additionalProperties: false,
          },
        },
      },
    });
  });

  test('[MR4] shutdown closes the memory even if a model fails to unload', async () => {
    let numClosed = 0;
    const memory = {
      ...remembered.memory,
      policies: remembered.memory.policies,
      sessions: remembered.memory.sessions,
      async close() {
        numClosed++;
      },
    };
    await createTestServer([], { memory }).shutDown(10);
    expect(numClosed).toBe(1);
    const broken = createTestServer([], { memory });
    const { models } = broken.services;
    const failing = createTestServer([], {
      memory,
      models: {
        ...models,
        async dispose() {
          throw new Error('stuck');
        },
      },
    });
    await expect(failing.shutDown(10)).rejects.toThrow('stuck');
    expect(numClosed).toBe(2);
  });
});
