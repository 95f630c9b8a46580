// The search of the dashboard's conversations over HTTP.
import { expect, test } from 'vitest';
import { createMemoryKeys, createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createTestLearning } from '../../runtime/learning/operations/harness.contract.ts';
import { createKeyStore } from '../keys/key-store.ts';

test('GET /v1/chats?q= finds words in the messages of the own conversations', async () => {
  const { memory } = await createTestLearning({}, 'toy');
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  const tokenOf = async (name: string) => (await keys.create({ name, tenant: 'team', scopes: ['inference'] })).token;
  const [ana, ben] = [await tokenOf('ana'), await tokenOf('ben')];
  const { model } = await createToyRuntime();
  const server = await createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false, memory });
  async function call(token: string, path: string, body?: object) {
    const response = await server.fetch(
      new Request(`http://localhost/v1/chats${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
    return { status: response.status, body: (await response.json()) as { data: { id: string }[]; error: object } };
  }
  const content = { messages: [{ text: 'Where do Zebras live?' }] };
  await call(ana, '/one', { title: 'Animals', version: 0, content });
  await call(ana, '/two', { title: 'Plants', version: 0, content: { messages: [] } });
  const idsOf = async (token: string, query: string) => (await call(token, query)).body.data.map(({ id }) => id);
  expect(await idsOf(ana, '?q=zebras%20live')).toEqual(['one']);
  expect(await idsOf(ben, '?q=zebras%20live')).toEqual([]);
  expect((await idsOf(ana, '?q=%20')).sort()).toEqual(['one', 'two']);
  expect(await call(ana, `?q=${'z'.repeat(201)}`)).toMatchObject({ status: 400, body: { error: { param: 'q' } } });
  expect(await call(ana, '?query=zebras')).toMatchObject({ status: 400, body: { error: { param: 'query' } } });
});
