// The expected scopes, so that a changed scope of an operation is noticed.
import { beforeEach, expect, test } from 'vitest';
import { createMemoryKeys, createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createTestLearning, type TestLearning } from '../../runtime/learning/operations/harness.contract.ts';
import { LEARNING_OPERATIONS, learningPath } from '../../runtime/learning/operations/index.ts';
import { createKeyStore } from '../keys/key-store.ts';

/** By path: allowed for read-only (r), inference (i) and admin (a) keys; `-`: not allowed. */
const MAY: Readonly<Record<string, string>> = {
  '/v1/feedback': '-ia',
  '/admin/learning/feedback': '-ia',
  '/admin/learning/lessons': 'ria',
  '/admin/learning/data': 'ria',
  '/admin/learning/series': 'ria',
  '/admin/learning/receipt': 'ria',
  '/admin/learning/status': 'ria',
  '/admin/learning/health': '--a',
  '/admin/learning/patterns': 'ria',
  '/admin/learning/run': '--a',
  '/admin/learning/cancel': '--a',
  '/admin/learning/history': 'ria',
  '/admin/learning/diff': 'ria',
  '/admin/learning/rollback': '--a',
  '/admin/learning/reset': '--a',
  '/admin/learning/forget': '-ia',
  '/admin/learning/export': 'ria',
  '/admin/federation/status': '--a',
  '/admin/federation/add-peer': '--a',
  '/admin/federation/remove-peer': '--a',
  '/admin/federation/set-privacy': '--a',
  '/admin/federation/push': '--a',
  '/admin/federation/pull': '--a',
};
const SCOPES = { r: 'read-only', i: 'inference', a: 'admin' } as const;

let desk: TestLearning;
let server: TestServer;
const tokens: Record<string, string> = {};

beforeEach(async () => {
  const { model } = await createToyRuntime();
  desk = await createTestLearning({}, 'toy');
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  const { memory, learning } = desk;
  server = createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false, memory, learning });
  for (const [letter, scope] of Object.entries(SCOPES)) {
    tokens[letter] = (await keys.create({ name: scope, tenant: 'alice', scopes: [scope] })).token;
  }
  tokens['bob'] = (await keys.create({ name: 'bob', tenant: 'bob', scopes: ['inference'] })).token;
});

async function ask(path: string, body: unknown, who: string) {
  const response = await server.fetch(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(tokens[who] === undefined ? {} : { authorization: `Bearer ${tokens[who]}` }),
      },
      body: JSON.stringify(body),
    }),
  );
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

test('[LS9] each path requires the scope of the table, and a key', async () => {
  expect(Object.keys(MAY).sort()).toEqual(['/v1/feedback', ...LEARNING_OPERATIONS.map(learningPath)].sort());
  const found: Record<string, string> = {};
  for (const path of Object.keys(MAY)) {
    let may = '';
    for (const letter of Object.keys(SCOPES)) may += (await ask(path, {}, letter)).status === 403 ? '-' : letter;
    found[path] = may;
    expect((await ask(path, {}, 'nobody')).status, path).toBe(401);
  }
  expect(found).toEqual(MAY);
});

test('[LS10] without an admin key no other tenant can be reached by any name', async () => {
  const id = await desk.add({}, 'alice');
  for (const path of Object.keys(MAY).filter((one) => one.startsWith('/admin/') && MAY[one]!.includes('i'))) {
    expect((await ask(`${path}?tenant=alice`, {}, 'bob')).status, path).toBe(403);
  }
  expect((await ask('/admin/learning/forget', { requestId: id }, 'bob')).body).toMatchObject({ numTrajectories: 0 });
  expect((await ask('/admin/learning/feedback', { requestId: id, thumbs: 'up' }, 'bob')).status).toBe(404);
  expect(await desk.learning.trajectories.get('alice', id)).toMatchObject({ feedback: [] });
  expect((await ask('/admin/learning/forget', { requestId: id }, 'i')).body).toMatchObject({ numTrajectories: 1 });
});

test('[LS11] erasing a tenant over HTTP disables its learned changes at once', async () => {
  const id = await desk.add({}, 'alice');
  await ask('/admin/learning/feedback', { requestId: id, thumbs: 'up', waitMs: 60_000 }, 'i');
  expect(desk.served.get('alice')!.instant).not.toBeNull();
  const erased = await ask('/admin/memory/tenants/erase?tenant=alice', { confirm: 'alice' }, 'a');
  expect(erased).toMatchObject({ status: 200, body: { isErased: true } });
  expect(desk.served.get('alice')).toEqual({ trained: null, instant: null });
  expect((await ask('/v1/feedback', { request_id: id, thumbs: 'up' }, 'i')).status).toBe(404);
});

test('[LS12] rejects contradictory feedback and names the field', async () => {
  const id = await desk.add({}, 'alice');
  const given = { request_id: id };
  for (const [words, param] of [
    [{ score: 1.01 }, 'score'],
    [{ score: '1' }, 'score'],
    [{ score: true }, 'score'],
    [{ score: 1, thumbs: 'down' }, 'thumbs'],
    [{ correction: 5 }, 'correction'],
    [{ correction: '' }, 'correction'],
    [{ correction: 'x'.repeat(65_537) }, 'correction'],
    [{ comment: 'x'.repeat(4097) }, 'comment'],
    [{ thumbs: null, score: null }, 'score'],
    [{ request_id: 'x'.repeat(129), score: 1 }, 'request_id'],
    [{ request_id: [id], score: 1 }, 'request_id'],
  ] as const) {
    const answer = await ask('/v1/feedback', { ...given, ...words }, 'i');
    expect([answer.status, (answer.body['error'] as { param: string }).param], JSON.stringify(words).slice(0, 80)).toEqual([400, param]); // prettier-ignore
  }
  expect(await desk.learning.trajectories.get('alice', id)).toMatchObject({ feedback: [] });
  expect((await ask('/v1/feedback', { ...given, correction: 'x'.repeat(65_536) }, 'i')).status).toBe(200);
});
