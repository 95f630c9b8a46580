// Clients report which of the recalled texts an answer used.
import { beforeEach, describe, expect, test } from 'vitest';
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
  // None of them, together with a score.
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
});

test('[LS16] a request without sources has none to name; a server without learning stores used sources', async () => {
  const messages = [{ role: 'user', content: 'lost card' }];
  const { body } = await post('/v1/chat/completions', { model: 'toy', messages, max_tokens: 3 });
  await desk.learning.settle();
  const given = { request_id: body['id'], used_sources: [texts[0]] };
  expect(await post('/v1/feedback', given)).toMatchObject({ status: 400, body: { error: { code: 'unknown_source' } } });
  await desk.learning.trajectories.remove('alice', []);
  expect(await post('/v1/feedback', given)).toMatchObject({
    status: 404,
    body: { error: { code: 'request_not_found' } },
  });
  const unlearning = await open(false);
  const { id, shown } = await ask(1, unlearning);
  expect(await post('/v1/feedback', { request_id: id, used_sources: shown }, { to: unlearning })).toMatchObject({
    status: 200,
    body: { learned: { state: 'nothing', reason: 'learning is off' } },
  });
  expect(await marksOf(id)).toEqual({ [shown[0]!]: true });
});

/** The score of a search result without ratings. */
const unrated = ({ similarity, lexical }: { similarity: number | null; lexical: number | null }): number =>
  similarity! + (lexical ?? 0);

describe('[LS19] ratings and the order of sources', () => {
  const rate = (id: string, thumbs: 'up' | 'down', used: string) =>
    post('/v1/feedback', { request_id: id, thumbs, used_sources: [used] });
  const similarities = async (): Promise<number[]> =>
    (await desk.memory.search('alice', { text: 'lost card', k: 3 })).results.map(({ similarity }) => similarity!);

  test('a source that good answers used comes first for a similar question', async () => {
    const [first, second, third] = await similarities();
    expect([second, third]).toEqual([first, first]);
    const { id, shown } = await ask(3);
    expect((await ask(3)).shown).toEqual(shown); // asking alone changes nothing
    await rate(id, 'up', shown[2]!);
    expect((await ask(3)).shown).toEqual([shown[2], shown[0], shown[1]]);
    // Forgetting the request takes its rating back.
    await desk.run('learn.forget', { requestId: id.replace('chatcmpl-', '') }, 'alice');
    expect((await ask(3)).shown).toEqual(shown);
  });

  test('a source that bad answers used comes last; the last rating of an answer counts', async () => {
    const { id, shown } = await ask(3);
    await rate(id, 'down', shown[0]!);
    expect((await ask(3)).shown).toEqual([shown[1], shown[2], shown[0]]);
    await rate(id, 'up', shown[0]!);
    expect((await ask(3)).shown).toEqual(shown);
  });

  test('ratings that fall on all sources alike change nothing', async () => {
    const { shown } = await ask(3);
    for (const thumbs of ['up', 'down'] as const) {
      for (const used of shown) await rate((await ask(3)).id, thumbs, used);
    }
    expect((await ask(3)).shown).toEqual(shown);
  });

  test('ratings of another question, and of another tenant, change nothing', async () => {
    const { shown } = await ask(3);
    const other = [{ role: 'user', content: 'purple elephants sing opera' }];
    const asked = await post('/v1/chat/completions', { model: 'toy', messages: other, max_tokens: 3, memory: { k: 3, minSimilarity: -1 } }); // prettier-ignore
    await desk.learning.settle();
    expect((await rate(asked.body['id'] as string, 'up', shown[2]!)).status).toBe(200);
    expect((await ask(3)).shown).toEqual(shown);
    const bobs = await desk.memory.add('bob', { text: 'lost card one' });
    await rate((await ask(3)).id, 'up', shown[0]!);
    const [result] = (await desk.memory.search('bob', { text: 'lost card' })).results;
    expect(result).toMatchObject({ record: { id: bobs }, score: unrated(result!) });
  });

  test('many bad ratings move a source by 0.1 at most, so that a nearer one stays ahead', async () => {
    const { shown } = await ask(3);
    const nearest = await desk.memory.add('alice', { text: 'lost card' });
    for (let i = 0; i < 12; i++) await rate((await ask(4)).id, 'down', nearest);
    for (let i = 0; i < 12; i++) await rate((await ask(4)).id, 'up', shown[0]!);
    const { results } = await desk.memory.search('alice', { text: 'lost card', k: 4 });
    const scoreOf = (id: string) => results.find(({ record }) => record.id === id)!;
    expect(scoreOf(nearest).score).toBeCloseTo(unrated(scoreOf(nearest)) - 0.1, 6);
    expect(scoreOf(shown[0]!).score).toBeCloseTo(unrated(scoreOf(shown[0]!)) + 0.1, 6);
  });

  test('ratings lose half their weight in 30 days and end with the request', async () => {
    const { id, shown } = await ask(3);
    await rate(id, 'up', shown[2]!);
    const boostAfter = async (days: number): Promise<number> => {
      desk.services.timeMs += days * 86_400_000;
      await desk.memory.maintain();
      const { results } = await desk.memory.search('alice', { text: 'lost card', k: 3 });
      const result = results.find(({ record }) => record.id === shown[2])!;
      return result.score - unrated(result);
    };
    const fresh = await boostAfter(0);
    expect(fresh).toBeGreaterThan(0.04);
    expect(await boostAfter(15)).toBeCloseTo(fresh / Math.SQRT2, 6);
    // The server's clock dates requests, the memory's deletes them.
    const dayNow = (Date.now() - desk.services.timeMs) / 86_400_000;
    expect(await boostAfter(dayNow + 31)).toBe(0);
  });
});
