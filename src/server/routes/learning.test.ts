import { beforeEach, describe, expect, test } from 'vitest';
import { createMemoryKeys, createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createTestLearning, type TestLearning } from '../../runtime/learning/operations/harness.contract.ts';
import { LEARNING_OPERATIONS, learningPath } from '../../runtime/learning/operations/index.ts';
import { createKeyStore } from '../keys/key-store.ts';

let desk: TestLearning;
let server: TestServer;
let keys: ReturnType<typeof createKeyStore>;

beforeEach(async () => {
  const { model } = await createToyRuntime();
  desk = await createTestLearning({}, 'toy');
  keys = createKeyStore(createMemoryKeys(), () => 1000);
  const { memory, learning } = desk;
  server = createTestServer([entryOf('toy', async () => model)], {
    keys,
    isOpen: false,
    memory,
    learning,
  });
});

const keyOf = async (tenant: string, scope: 'inference' | 'admin' | 'read-only'): Promise<string> =>
  (await keys.create({ name: tenant, tenant, scopes: [scope] })).token;

async function ask(path: string, body: unknown, token: string, to = server) {
  const response = await to.fetch(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    }),
  );
  return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> }; // prettier-ignore
}

const chat = { model: 'toy', messages: [{ role: 'user', content: 'hi' }], max_tokens: 3 };

describe('feedback over HTTP', () => {
  test('[LS1] a thumbs-up right after the answer is stored with the request and changes the model of the tenant', async () => {
    const alice = await keyOf('alice', 'inference');
    const { body } = await ask('/v1/chat/completions', chat, alice);
    const judged = await ask('/v1/feedback', { request_id: body['id'], thumbs: 'up', source: 'ui' }, alice);
    expect(judged).toMatchObject({ status: 200, body: { accepted: true, verdict: 'success', quality: 1 } });
    expect((judged.body['learned'] as { state: string }).state).toMatch(/^(applied|pending)$/);
    await desk.learning.settle();
    const requestId = (body['id'] as string).replace('chatcmpl-', '');
    expect(await desk.learning.trajectories.get('alice', requestId)).toMatchObject({
      model: 'toy',
      verdict: 'success',
      feedback: [{ source: 'ui', score: 1 }],
    });
    expect([...desk.served.keys()]).toEqual(['alice']);
    expect(desk.served.get('alice')!.instant).not.toBeNull();
  });

  test("[LS2] feedback on another tenant's request is a 404 without effect; a read-only key gets a 403", async () => {
    const [alice, bob, eye] = [await keyOf('alice', 'inference'), await keyOf('bob', 'inference'), await keyOf('alice', 'read-only')]; // prettier-ignore
    const { body } = await ask('/v1/chat/completions', chat, alice);
    const given = { request_id: body['id'], thumbs: 'down' };
    expect(await ask('/v1/feedback', given, bob)).toMatchObject({ status: 404, body: { error: { code: 'request_not_found' } } }); // prettier-ignore
    expect((await ask('/v1/feedback', given, eye)).status).toBe(403);
    expect((await ask('/admin/learning/feedback', { requestId: body['id'], thumbs: 'down' }, eye)).status).toBe(403);
    await desk.learning.settle();
    const requestId = (body['id'] as string).replace('chatcmpl-', '');
    expect(await desk.learning.trajectories.get('alice', requestId)).toMatchObject({
      verdict: 'unknown',
      feedback: [],
    });
    expect(desk.served.size).toBe(0);
  });

  test('[LS3] a request from before the server started can be rated', async () => {
    const alice = await keyOf('alice', 'inference');
    const requestId = await desk.add({ model: 'toy' }, 'alice');
    expect(await ask('/v1/feedback', { request_id: requestId, score: 0.1 }, alice)).toMatchObject({
      status: 200,
      body: { verdict: 'failure', quality: 0.1 },
    });
  });

  test('[LS4] too much feedback of one tenant is a 429 with a retry time', async () => {
    const [alice, bob] = [await keyOf('alice', 'inference'), await keyOf('bob', 'inference')];
    const { body } = await ask('/v1/chat/completions', chat, alice);
    const given = { request_id: body['id'], comment: 'again' };
    for (let i = 0; i < 60; i++) expect((await ask('/v1/feedback', given, alice)).status).toBe(200);
    for (const [path, input] of [
      ['/v1/feedback', given],
      ['/admin/learning/feedback', { requestId: body['id'], comment: 'again' }],
    ] as const) {
      const refused = await ask(path, input, alice);
      expect(refused).toMatchObject({ status: 429, body: { error: { code: 'rate_limit_exceeded', type: 'rate_limit_error' } } }); // prettier-ignore
      expect(refused.headers.get('retry-after')).toBe('1');
    }
    const { body: other } = await ask('/v1/chat/completions', chat, bob);
    expect((await ask('/v1/feedback', { request_id: other['id'], comment: 'mine' }, bob)).status).toBe(200);
  });

  test('[LS5] unknown fields, values out of range and empty feedback are a 400', async () => {
    const alice = await keyOf('alice', 'inference');
    const { body } = await ask('/v1/chat/completions', chat, alice);
    for (const more of [{ stars: 5 }, { score: 2 }, { thumbs: 'sideways' }, {}, { score: 1, source: 'implicit' }]) {
      expect((await ask('/v1/feedback', { request_id: body['id'], ...more }, alice)).status).toBe(400);
    }
    await desk.learning.settle();
    const requestId = (body['id'] as string).replace('chatcmpl-', '');
    expect(await desk.learning.trajectories.get('alice', requestId)).toMatchObject({ feedback: [] });
  });
});

test('[LS6] operations require their scope, and an administrator can name a tenant', async () => {
  const tokens = { read: await keyOf('alice', 'read-only'), write: await keyOf('alice', 'inference'), admin: await keyOf('root', 'admin') }; // prettier-ignore
  for (const operation of LEARNING_OPERATIONS) {
    const isForbidden = async (token: string) => (await ask(learningPath(operation), {}, token)).status === 403;
    expect([operation.name, await isForbidden(tokens.read), await isForbidden(tokens.write)]).toEqual([
      operation.name,
      operation.scope !== 'read',
      operation.scope === 'admin',
    ]);
  }
  await desk.add({}, 'alice');
  const numOf = async (path: string, token: string) => (await ask(path, {}, token)).body['numRequests'];
  expect(await numOf('/admin/learning/status', tokens.write)).toMatchObject({ unknown: 1 });
  expect(await numOf('/admin/learning/status?tenant=alice', tokens.admin)).toMatchObject({ unknown: 1 });
  expect(await numOf('/admin/learning/status', tokens.admin)).toMatchObject({ unknown: 0 });
  expect((await ask('/admin/learning/status?tenant=root', {}, tokens.write)).status).toBe(403);
});

test('[LS17] a run reports each part, with and without a router', async () => {
  const root = await keyOf('root', 'admin');
  const path = '/admin/learning/run';
  const bare = await ask(path, { waitMs: 50_000 }, root);
  expect(bare.body['parts']).toMatchObject([
    { part: 'model', state: 'kept', reason: '0 examples to train on, 4 are needed' },
    { part: 'reranking', state: 'kept' },
    { part: 'routing', state: 'absent', reason: expect.stringContaining('--route-config') as string },
  ]);
  expect(await ask(path, { of: 'routing' }, root)).toMatchObject({ status: 400, body: { error: { param: 'of' } } });
  const asked: string[] = [];
  desk.learning.join({
    name: 'routing',
    run: async () => {},
    train: async (tenant, loop) => (asked.push(`${tenant} ${loop}`), { version: null, reason: 'too few' }),
  });
  expect((await ask(path, { of: 'routing', loop: 'deep', waitMs: 50_000 }, root)).body).toMatchObject({
    state: 'done',
    parts: [{ part: 'routing', state: 'kept', version: null, reason: 'too few' }],
  });
  expect(asked).toEqual(['root deep']);
  const nothing = await ask('/admin/learning/cancel', { of: 'routing' }, root);
  expect(nothing.status).toBe(404);
});

test('[LS7] a server without learning says so and still stores feedback', async () => {
  const { model } = await createToyRuntime();
  const bare = createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false, memory: desk.memory });
  const root = await keyOf('root', 'admin');
  for (const operation of LEARNING_OPERATIONS) {
    expect(await ask(learningPath(operation), {}, root, bare)).toMatchObject({
      status: 501,
      body: { error: { message: expect.stringContaining('--no-learning') as string } },
    });
  }
  const { body } = await ask('/v1/chat/completions', chat, root, bare);
  expect(await ask('/v1/feedback', { request_id: body['id'], score: 1 }, root, bare)).toMatchObject({
    status: 200,
    body: { accepted: true, verdict: 'success', quality: 1, learned: { state: 'nothing', reason: 'learning is off' } },
  });
  const requestId = (body['id'] as string).replace('chatcmpl-', '');
  expect(await desk.learning.trajectories.get('root', requestId)).toMatchObject({
    quality: 1,
    feedback: [{ source: 'api', score: 1 }],
  });
  expect(desk.served.size).toBe(0);
});

test('[LS20] a server without a memory rejects feedback: it has nowhere to store it', async () => {
  const { model } = await createToyRuntime();
  const bare = createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false });
  const root = await keyOf('root', 'admin');
  const { body } = await ask('/v1/chat/completions', chat, root, bare);
  expect(await ask('/v1/feedback', { request_id: body['id'], score: 1 }, root, bare)).toMatchObject({
    status: 501,
    body: { error: { code: 'not_implemented', message: expect.stringContaining('requires memory') as string } },
  });
});

test('[LS8] metrics count feedback and learning steps', async () => {
  const root = await keyOf('root', 'admin');
  const { body } = await ask('/v1/chat/completions', chat, root);
  await ask('/v1/feedback', { request_id: body['id'], score: 1 }, root);
  await desk.learning.settle();
  const response = await server.fetch(new Request('http://localhost/metrics', { headers: { authorization: `Bearer ${root}` } })); // prettier-ignore
  const lines = (await response.text()).split('\n');
  for (const line of [
    'ruvllm_feedback_total{source="api"} 1',
    'ruvllm_learning_steps{kind="applied"} 1',
    'ruvllm_learning_steps{kind="refused"} 0',
    'ruvllm_learning_versions{kind="accepted"} 0',
  ]) {
    expect(lines).toContain(line);
  }
});
