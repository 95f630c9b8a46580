import { beforeEach, expect, test } from 'vitest';
import { createSpokenModel, type SpokenModel } from '../../../test/support/spoken-model.ts';
import { createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { openTestMemory, type TestMemory } from '../../../test/support/test-memory.ts';
import { AUDIT_KIND } from '../../memory/types.ts';

let memory: TestMemory;
let spoken: SpokenModel;
let server: TestServer;

beforeEach(async () => {
  memory = await openTestMemory();
  spoken = createSpokenModel(['In the sea.']);
  server = createTestServer([entryOf('whale', async () => spoken.model)], { memory });
});

const messages = [{ role: 'user', content: 'where is the blue whale?' }];
const post = (path: string, body: object): Promise<Response> =>
  server.fetch(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({ model: 'whale', ...body }),
    }),
  );

/** Audit entries after the server has ended. */
async function entries() {
  const { store } = memory;
  const close = store.close.bind(store);
  Object.assign(store, { close: async () => {} });
  await server.shutDown(1000);
  const { records } = await store.find('local', { kinds: [AUDIT_KIND], order: 'oldest', limit: 100 });
  await close();
  return records.map(({ body }) => (body as { entry: Record<string, unknown> }).entry);
}

test.each([
  ['/v1/chat/completions', { messages }],
  ['/v1/chat/completions', { messages, stream: true, n: 2 }],
  ['/v1/responses', { input: 'where is the blue whale?' }],
  ['/v1/messages', { messages, max_tokens: 50 }],
  ['/v1/completions', { prompt: 'where is the blue whale?' }],
])('[RM1] [RM6] %s %j is one entry, under the id its client was told', async (path, body) => {
  const answer = await post(path, body);
  const requestId = answer.headers.get('x-request-id');
  expect([answer.status, await answer.text()].at(0)).toBe(200);
  expect(await entries()).toMatchObject([
    { requestId, model: 'whale', query: 'where is the blue whale?', response: 'In the sea.', error: null },
  ]);
});

test.each([
  ['/v1/chat/completions', { messages }],
  ['/v1/responses', { input: 'where is the blue whale?', stream: true }],
  ['/v1/messages', { messages, max_tokens: 50 }],
])('[RM6] %s recalls where the body wishes it, and names what', async (path, body) => {
  const id = await memory.add('local', { text: 'The blue whale is in the Atlantic.' });
  const without = await post(path, body);
  expect([await without.text(), without.headers.get('x-memory-sources')].at(1)).toBeNull();
  const answer = await post(path, { ...body, memory: { k: 1, minSimilarity: 0.3 } });
  await answer.text();
  expect(answer.headers.get('x-memory-sources')).toBe(`1=document:${id}`);
  expect(spoken.requests.map(({ prompt }) => prompt.includes('[1] The blue whale is in the Atlantic.'))).toEqual([
    false,
    true,
  ]);
});

test('[RM4] sessions are found by the adapter of their last request', async () => {
  const found = async (adapter: string) => {
    const answer = await post('/admin/memory/sessions/list', { model: undefined, adapter });
    const { sessions } = (await answer.json()) as { sessions: { sessionId: string; activeAdapter: string | null }[] };
    return sessions.map(({ sessionId, activeAdapter }) => `${sessionId} ${activeAdapter}`);
  };
  // Behind the name of a model that is not loaded yet; then in the body.
  await (await post('/v1/chat/completions', { model: 'whale:legal', messages, session: 's1' })).text();
  await expect.poll(() => found('legal')).toEqual(['s1 legal']);
  await (
    await post('/v1/chat/completions', { messages, session: 's2', adapter: [{ name: 'legal', scale: 0.5 }] })
  ).text();
  await expect.poll(() => found('legal')).toEqual(['s2 legal', 's1 legal']);
  await (await post('/v1/chat/completions', { messages, session: 's1' })).text();
  await expect.poll(() => found('legal')).toEqual(['s2 legal']);
});

test('a client that leaves is in the log as one', async () => {
  const answer = await post('/v1/chat/completions', { messages, stream: true });
  await answer.body!.cancel();
  expect(await entries()).toMatchObject([{ error: { code: 'aborted' } }]);
});

test('wishes that make no sense, and wishes without a memory, are a 400', async () => {
  const bad = await post('/v1/chat/completions', { messages, memory: { k: 0 } });
  expect([bad.status, await bad.json()]).toMatchObject([
    400,
    { error: { message: expect.stringContaining("'memory.k'") } },
  ]);
  server = createTestServer([entryOf('whale', async () => spoken.model)]);
  const none = await post('/v1/chat/completions', { messages, memory: {} });
  expect([none.status, await none.json()]).toMatchObject([
    400,
    { error: { message: expect.stringContaining("'memory'") } },
  ]);
});
