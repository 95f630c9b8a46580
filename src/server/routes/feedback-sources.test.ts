// Clients report which of the recalled texts an answer used.
import { beforeEach, expect, test } from 'vitest';
import { createMemoryKeys, createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { gatherLists } from '../../learning/rerank-training/rank-examples.ts';
import { createTestLearning, type TestLearning } from '../../runtime/learning/operations/harness.contract.ts';
import { createKeyStore } from '../keys/key-store.ts';

let desk: TestLearning;
let server: TestServer;
const tokens = new Map<string, string>();
let texts: readonly string[];
let open: (learns: boolean) => Promise<TestServer>;

beforeEach(async () => {
  desk = await createTestLearning({}, 'toy');
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  for (const tenant of ['alice', 'bob']) {
    tokens.set(tenant, (await keys.create({ name: tenant, tenant, scopes: ['inference'] })).token);
  }
  open = async (learns) => {
    const { model } = await createToyRuntime();
    const { memory } = desk;
    const learning = learns ? { learning: desk.learning } : {};
    return createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false, memory, ...learning });
  };
  server = await open(true);
  texts = await Promise.all(['one', 'two', 'three'].map((word) => desk.memory.add('alice', { text: `lost card ${word}` }))); // prettier-ignore
});

async function post(path: string, body: unknown, { who = 'alice', to = server } = {}) {
  const response = await to.fetch(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${tokens.get(who)!}` },
      body: JSON.stringify(body),
    }),
  );
  return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> }; // prettier-ignore
}

/** Sends a request with memory; returns the ids of the answer and of the recalled texts. */
async function ask(k: number, to = server): Promise<{ id: string; shown: string[] }> {
  const messages = [{ role: 'user', content: 'lost card' }];
  const asked = await post('/v1/chat/completions', { model: 'toy', messages, max_tokens: 3, memory: { k, minSimilarity: 0.1 } }, { to }); // prettier-ignore
  const shown = (asked.headers.get('x-memory-sources') ?? '').split(' ').map((one) => one.split(':').at(-1)!);
  await desk.learning.settle();
  return { id: asked.body['id'] as string, shown };
}

const marksOf = async (id: string) =>
  Object.fromEntries(
    (await desk.learning.trajectories.get('alice', id.replace('chatcmpl-', '')))!.retrieved.map((one) => [
      one.id,
      one.isUsed,
    ]),
  );

test('[LS15] used sources are marked and train re-ranking', async () => {
  const { id, shown } = await ask(2);
  expect(shown).toHaveLength(2);
  const [first, second] = shown as [string, string];
  const { store } = desk;
  expect((await gatherLists(store, desk.learning.trajectories, 'alice')).requestIds).toEqual([]);
  const given = await post('/v1/feedback', { request_id: id, used_sources: [second] });
  expect(given).toMatchObject({
    status: 200,
    body: { verdict: 'unknown', quality: null, learned: { state: 'nothing', reason: expect.stringContaining('used sources') as string } }, // prettier-ignore
  });
  expect(await marksOf(id)).toEqual({ [first]: false, [second]: true });
  const { examples, requestIds } = await gatherLists(store, desk.learning.trajectories, 'alice');
  expect(requestIds).toEqual([id.replace('chatcmpl-', '')]);
  expect(examples[0]!.used.filter((use) => use !== null).toSorted()).toEqual([false, true]);
  expect(server.feedbacks).toMatchObject([{ score: null, usedSources: [second] }]);
  // No source, with a score.
  expect((await post('/v1/feedback', { request_id: id, score: 0.8, used_sources: [] })).status).toBe(200);
  expect(await marksOf(id)).toEqual({ [first]: false, [second]: false });
});

test('[LS16] rejects sources that were not recalled for the request, and stores none of the feedback', async () => {
  const { id, shown } = await ask(2);
  const before = await marksOf(id);
  const hidden = texts.find((one) => !shown.includes(one))!;
  for (const [sources, status, code, param] of [
    [[hidden], 400, 'unknown_source', 'used_sources'],
    [[shown[0], '0199a0b4-7c00-7000-8000-0000000000ff'], 400, 'unknown_source', 'used_sources'],
    [['1'], 400, 'unknown_source', 'used_sources'],
    [shown[0], 400, 'invalid_value', 'used_sources'],
    [[7], 400, 'invalid_value', 'used_sources[0]'],
    [[''], 400, 'invalid_value', 'used_sources[0]'],
    [Array.from({ length: 65 }, () => shown[0]), 422, 'limit_exceeded', 'used_sources'],
  ] as const) {
    const answer = await post('/v1/feedback', { request_id: id, score: 1, used_sources: sources });
    expect(answer, JSON.stringify(sources)).toMatchObject({ status, body: { error: { code, param } } });
  }
  expect(await marksOf(id)).toEqual(before);
  expect(await desk.learning.trajectories.get('alice', id.replace('chatcmpl-', ''))).toMatchObject({ feedback: [] });
  expect((await post('/v1/feedback', { request_id: id, used_sources: [shown[0]] }, { who: 'bob' })).status).toBe(404);
  expect(server.feedbacks).toEqual([]);
});

test('[LS16] rejects sources of a request without any, and on a server without learning', async () => {
  const messages = [{ role: 'user', content: 'lost card' }];
  const { body } = await post('/v1/chat/completions', { model: 'toy', messages, max_tokens: 3 });
  await desk.learning.settle();
  const given = { request_id: body['id'], used_sources: [texts[0]] };
  expect(await post('/v1/feedback', given)).toMatchObject({ status: 400, body: { error: { code: 'unknown_source' } } });
  // In the server's recent requests, but without a trajectory.
  await desk.learning.trajectories.remove('alice', []);
  expect(await post('/v1/feedback', given)).toMatchObject({
    status: 400,
    body: { error: { code: 'unknown_source', message: expect.stringContaining('are not stored') as string } },
  });
  const deaf = await open(false);
  const { id, shown } = await ask(1, deaf);
  expect(await post('/v1/feedback', { request_id: id, used_sources: shown }, { to: deaf })).toMatchObject({
    status: 501,
    body: { error: { code: 'not_implemented', param: 'used_sources' } },
  });
  expect(deaf.feedbacks).toEqual([]);
});
