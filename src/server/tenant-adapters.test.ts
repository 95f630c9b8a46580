import { expect, test } from 'vitest';
import { createMemoryKeys, createTestServer, entryOf } from '../../test/support/test-server.ts';
import { createToyRuntime } from '../../test/support/toy-runtime.ts';
import type { Model } from '../runtime/model.ts';
import { createKeyStore } from './keys/key-store.ts';

const messages = [{ role: 'user', content: 'hi' }];
/** Names of the same length, so that only the name differs. */
const [SECRET, UNKNOWN] = ['toy:alices-adapter', 'toy:nobody-adapter'];
const BODIES: readonly (readonly [path: string, body: object])[] = [
  ['/v1/chat/completions', { messages, max_tokens: 1 }],
  ['/v1/completions', { prompt: 'a', max_tokens: 1 }],
  ['/v1/messages', { messages, max_tokens: 1 }],
  ['/v1/messages/count_tokens', { messages }],
  ['/v1/embeddings', { input: 'a' }],
  ['/tokenize', { content: 'a' }],
  ['/api/chat', { messages, stream: false }],
  ['/v1/rerank', { query: 'a', documents: ['b'] }],
];

async function setUp(modelFallback: boolean) {
  const { model: toy } = await createToyRuntime();
  const model: Model = {
    ...toy,
    adapters: () => [{ name: 'alices-adapter', tenant: 'alice' }] as unknown as ReturnType<Model['adapters']>,
  };
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  const tokenOf = async (tenant: string) => (await keys.create({ name: tenant, tenant, scopes: ['inference'] })).token;
  const [alice, bob] = [await tokenOf('alice'), await tokenOf('bob')];
  const server = createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false, modelFallback });
  const send = async (token: string, path: string, body: object | null): Promise<[number, string]> => {
    const response = await server.fetch(
      new Request(`http://localhost${path}`, {
        method: body === null ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body === null ? {} : { body: JSON.stringify(body) }),
      }),
    );
    return [response.status, await response.text()];
  };
  await send(alice, '/v1/chat/completions', { model: 'toy', messages, max_tokens: 1 });
  return { alice, bob, send };
}

/** Without what differs between two requests anyway. */
const withoutIds = (text: string): string =>
  text
    .replaceAll(SECRET, 'NAME')
    .replaceAll(UNKNOWN, 'NAME')
    .replaceAll(/"(id|request_id|created|created_at|.*duration)":"?[^,"}]*"?/g, '');

test('[K4] an adapter of another tenant is as unknown as one that does not exist', async () => {
  const { bob, send } = await setUp(false);
  for (const [path, body] of BODIES) {
    const [secret, unknown] = [
      await send(bob, path, { ...body, model: SECRET }),
      await send(bob, path, { ...body, model: UNKNOWN }),
    ];
    expect([path, secret[0], withoutIds(secret[1])]).toEqual([path, unknown[0], withoutIds(unknown[1])]);
    expect([path, secret[0]]).toEqual([path, 404]);
  }
  const [secret, unknown] = [
    await send(bob, `/v1/models/${SECRET}`, null),
    await send(bob, `/v1/models/${UNKNOWN}`, null),
  ];
  expect([secret[0], withoutIds(secret[1])]).toEqual([404, withoutIds(unknown[1])]);
});

test('[K4] also where a fallback answers unknown names', async () => {
  const { bob, send } = await setUp(true);
  for (const name of [SECRET, UNKNOWN]) {
    const [status, text] = await send(bob, '/v1/completions', { model: name, prompt: 'a', max_tokens: 1 });
    expect([status, (JSON.parse(text) as { model: string }).model]).toEqual([200, 'toy']);
  }
});

test('its own tenant finds it', async () => {
  const { alice, send } = await setUp(false);
  expect((await send(alice, `/v1/models/${SECRET}`, null))[0]).toBe(200);
  // The toy has no such weights: the request got as far as the engine's names.
  expect((await send(alice, '/v1/completions', { model: SECRET, prompt: 'a' }))[1]).toMatch(/adapter .* not found/);
});
