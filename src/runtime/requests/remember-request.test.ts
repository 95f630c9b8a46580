import { beforeEach, describe, expect, test } from 'vitest';
import { createSpokenModel, type SpokenModel } from '../../../test/support/spoken-model.ts';
import { createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { openTestMemory, type TestMemory } from '../../../test/support/test-memory.ts';
import { AUDIT_KIND } from '../../memory/types.ts';

let memory: TestMemory;
let spoken: SpokenModel;
let server: TestServer;

beforeEach(async () => {
  memory = await openTestMemory();
  spoken = createSpokenModel(['In the sea.'], { adapters: ['legal'] });
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

describe('[RM10] the field memory of an answer', () => {
  const filler = (topic: string): string =>
    Array.from(
      { length: 40 },
      (_, i) => `Note ${i ** 3} of ${topic} number ${i * 7919} says ${'abcdefgh'.slice(i % 8)}.`,
    ).join(' ');
  const handbook = `# Whales\n\n${filler('the sea')}\n\n## Where they are\n\nThe blue whale is in the Atlantic.\n\n## Food\n\n${filler('krill')}`;
  const recalled = async (memory: object, body: object = { messages }, path = '/v1/chat/completions') => {
    const response = await post(path, { ...body, memory });
    const text = await response.text();
    return { response, text, memory: /"memory":(\{.*?\]\})/.exec(text)?.[1] };
  };

  test.each([
    ['/v1/chat/completions', { messages }],
    ['/v1/chat/completions', { messages, stream: true }],
    ['/v1/completions', { prompt: 'where is the blue whale?' }],
    ['/v1/completions', { prompt: 'where is the blue whale?', stream: true }],
    ['/v1/responses', { input: 'where is the blue whale?' }],
    ['/v1/messages', { messages, max_tokens: 50 }],
  ])('%s %j names the document, headings and lines of a source', async (path, body) => {
    const { id } = await memory.documents.add('local', { name: 'whales.md', content: handbook });
    const answer = await recalled({ k: 1, tokenBudget: 120, minSimilarity: 0.1 }, body, path);
    const block = JSON.parse(answer.memory!) as Record<string, unknown>;
    expect(block).toMatchObject({
      outcome: 'used',
      token_budget: 120,
      sources: [{ number: 1, kind: 'document', document_id: id, name: 'whales.md', headings: ['Whales', 'Where they are'], start_line: 5 }], // prettier-ignore
    });
    const [source] = block['sources'] as { start_char: number; end_char: number }[];
    expect(handbook.slice(source!.start_char, source!.end_char)).toContain('The blue whale is in the Atlantic.');
    expect(spoken.requests[0]!.prompt).toContain('[1] whales.md, lines 5–7 › Whales › Where they are\n');
  });

  test('has as many tokens as the model counts, and never more than the budget', async () => {
    await memory.documents.add('local', { name: 'whales.md', content: handbook });
    for (const tokenBudget of [150, 400, 1000]) {
      const { memory: block } = await recalled({ k: 5, tokenBudget, minSimilarity: -1 });
      const { num_tokens: numTokens } = JSON.parse(block!) as { num_tokens: number };
      const prompt = spoken.requests.at(-1)!.prompt;
      const context = /refer to them by number where they do\.\n([\s\S]*)\nwhere is the blue whale/.exec(prompt)![1]!;
      expect(spoken.model.tokenizer.encode(context)).toHaveLength(numTokens);
      expect(numTokens).toBeLessThanOrEqual(tokenBudget);
    }
  });

  test('says that nothing fitted, and that nothing was found', async () => {
    const empty = await recalled({});
    expect(JSON.parse(empty.memory!)).toMatchObject({ outcome: 'nothing_found', num_left_out: 0, sources: [] });
    await memory.documents.add('local', { name: 'whales.md', content: handbook });
    const { response, memory: block } = await recalled({ tokenBudget: 3, minSimilarity: -1 });
    expect(JSON.parse(block!)).toMatchObject({ outcome: 'nothing_fitted', num_left_out: 5, sources: [] });
    expect(response.headers.get('x-memory-outcome')).toBe('nothing_fitted');
  });

  test('fewer sources instead of an error where the context has no room', async () => {
    await memory.documents.add('local', { name: 'whales.md', content: handbook });
    const { maxContext } = spoken.model.modelInfo();
    for (let i = 0; maxContext > i * handbook.length; i++) {
      await memory.documents.add('local', {
        name: `${i}.md`,
        content: handbook.replaceAll('Note', `Note of ${i ** 5}`),
      });
    }
    const { response, memory: block } = await recalled({ k: 50, tokenBudget: 8 * maxContext, minSimilarity: -1 });
    expect(response.status).toBe(200);
    const { token_budget: budget, sources } = JSON.parse(block!) as { token_budget: number; sources: unknown[] };
    expect([budget < maxContext, sources.length > 0]).toEqual([true, true]);
  });
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

test('[RM12] over HTTP, a fact of one session is recalled in another, with tier and speaker of its source', async () => {
  const facts = { facts: [{ subject: 'user', attribute: 'city', value: 'Lisbon', polarity: 'is' }] };
  spoken = createSpokenModel(['Nice.', JSON.stringify(facts), 'In Lisbon.', '{"facts":[]}']);
  const say = async (content: string, session: string) => {
    const body = { messages: [{ role: 'user', content }], session, user: 'alice', memory: { remember: true } };
    const answer = (await (await post('/v1/chat/completions', body)).json()) as { memory: { sources: object[] } };
    await memory.agents.idle();
    return answer;
  };
  await say('I live in the city Lisbon.', 'one');
  const { memory: recall } = await say('In which city do I live?', 'two');
  expect(recall.sources).toEqual([
    expect.objectContaining({ number: 1, kind: 'fact', tier: 'semantic', speaker: 'user' }),
    expect.objectContaining({ number: 2, kind: 'agent-step', tier: 'episodic', speaker: 'user' }),
  ]);
  expect(spoken.requests[2]!.prompt).toContain('facts, user ');
  const headers = { 'content-type': 'application/json' };
  const listed = await server.fetch(new Request('http://localhost/admin/memory/facts/list', { method: 'POST', headers, body: '{}' })); // prettier-ignore
  expect(await listed.json()).toMatchObject({ facts: [{ value: 'Lisbon', speaker: 'user', sessionId: 'one', numUses: 1 }] }); // prettier-ignore
});
