import { beforeAll, describe, expect, test } from 'vitest';
import { settle } from '../../../test/support/manual-clock.ts';
import { createMemoryKeys, createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createKeyStore, type KeyScope } from '../keys/key-store.ts';
import type { Route } from '../route.ts';
import { createTestLearning, type TestLearning } from '../../runtime/learning/operations/harness.contract.ts';
import { ROUTES } from './table.ts';

/** What alice has made, for bob to ask for. */
interface Objects {
  readonly requestId: string;
  readonly responseId: string;
  readonly recordId: string;
  /** Of the memory; looks like an id so that the answers about it can be compared. */
  readonly sessionId: string;
}

interface Call {
  readonly path?: string;
  readonly body?: object;
  /** What somebody with the right key gets. */
  readonly status: number;
  /**
   * How the route names something that belongs to a tenant, and what its owner gets; anybody else gets a 404. `nothing`: it
   * names none; `any tenant`: it is for administrators, who see all.
   */
  readonly owned: 'nothing' | 'any tenant' | ((objects: Objects) => Pick<Call, 'path' | 'body' | 'status'>);
}

const NOBODY = '0199a0b4-7c00-7000-8000-00000000ffff';
const messages = [{ role: 'user', content: 'hi' }];
const chat = { model: 'toy', messages, max_tokens: 2 };

/** All routes: a new one has no test before it has a line here, and `owned` is to be thought about. */
const CALLS: Readonly<Record<string, Call>> = {
  'POST /v1/chat/completions': { body: chat, status: 200, owned: 'nothing' },
  'POST /v1/completions': { body: { model: 'toy', prompt: 'hi', max_tokens: 2 }, status: 200, owned: 'nothing' },
  'POST /v1/responses': {
    body: { model: 'toy', input: 'hi', max_output_tokens: 2 },
    status: 200,
    owned: ({ responseId }) => ({
      body: { model: 'toy', input: 'on', max_output_tokens: 1, previous_response_id: responseId },
      status: 200,
    }),
  },
  'GET /v1/responses/:id': {
    path: '/v1/responses/resp_none',
    status: 404,
    owned: ({ responseId }) => ({ path: `/v1/responses/${responseId}`, status: 200 }),
  },
  'DELETE /v1/responses/:id': {
    path: '/v1/responses/resp_none',
    status: 404,
    owned: ({ responseId }) => ({ path: `/v1/responses/${responseId}`, status: 200 }),
  },
  'GET /v1/responses/:id/input_items': {
    path: '/v1/responses/resp_none/input_items',
    status: 404,
    owned: ({ responseId }) => ({ path: `/v1/responses/${responseId}/input_items`, status: 200 }),
  },
  'POST /v1/responses/:id/cancel': {
    path: '/v1/responses/resp_none/cancel',
    status: 404,
    owned: ({ responseId }) => ({ path: `/v1/responses/${responseId}/cancel`, status: 400 }),
  },
  'POST /v1/responses/input_tokens': {
    body: { model: 'toy', input: 'hi' },
    status: 200,
    owned: ({ responseId }) => ({
      body: { model: 'toy', input: 'on', previous_response_id: responseId },
      status: 200,
    }),
  },
  'POST /v1/messages': { body: chat, status: 200, owned: 'nothing' },
  'POST /v1/messages/count_tokens': { body: { model: 'toy', messages }, status: 200, owned: 'nothing' },
  'POST /v1/embeddings': { body: { model: 'toy', input: 'hi' }, status: 200, owned: 'nothing' },
  'POST /v1/feedback': {
    body: { request_id: 'unknown', thumbs: 'up' },
    status: 404,
    owned: ({ requestId }) => ({ body: { request_id: requestId, thumbs: 'up' }, status: 200 }),
  },
  'POST /v1/route': { body: { prompt: 'hi' }, status: 501, owned: 'nothing' },
  'GET /v1/models': { status: 200, owned: 'nothing' },
  'GET /v1/models/:id{.+}': { path: '/v1/models/toy', status: 200, owned: 'nothing' },
  'POST /tokenize': { body: { content: 'hi' }, status: 200, owned: 'nothing' },
  'POST /detokenize': { body: { tokens: [4] }, status: 200, owned: 'nothing' },
  'POST /apply-template': { body: { messages }, status: 200, owned: 'nothing' },
  'GET /health': { status: 200, owned: 'nothing' },
  'GET /metrics': { status: 200, owned: 'nothing' },
  'GET /props': { status: 200, owned: 'nothing' },
  'GET /slots': { status: 200, owned: 'nothing' },
  'GET /v1/whoami': { status: 200, owned: 'nothing' },
  'GET /admin/live': { status: 200, owned: 'nothing' },
  'GET /admin/live/events': { status: 200, owned: 'nothing' },
  'GET /admin/prefix-tree': { status: 200, owned: 'nothing' },
  'GET /admin/models': { status: 200, owned: 'nothing' },
  'POST /admin/models/load': { body: { model: 'toy', wait_ms: 5000 }, status: 200, owned: 'any tenant' },
  'POST /admin/models/unload': { body: { model: 'none' }, status: 404, owned: 'any tenant' },
  'DELETE /admin/models/:id{.+}': { path: '/admin/models/none', status: 404, owned: 'any tenant' },
  'POST /admin/models/pull': { body: { model: 'a/b' }, status: 501, owned: 'any tenant' },
  'GET /admin/models/pulls': { status: 501, owned: 'nothing' },
  'GET /admin/models/pulls/:id/events': { path: '/admin/models/pulls/none/events', status: 501, owned: 'nothing' },
  'DELETE /admin/models/pulls/:id': { path: '/admin/models/pulls/none', status: 501, owned: 'any tenant' },
  'GET /admin/keys': { status: 200, owned: 'any tenant' },
  'POST /admin/keys': { body: { name: 'new' }, status: 201, owned: 'any tenant' },
  'DELETE /admin/keys/:id': { path: '/admin/keys/000000000000000000', status: 404, owned: 'any tenant' },
  'GET /admin/sessions/:tenant': { path: '/admin/sessions/alice', status: 200, owned: 'any tenant' },
  'DELETE /admin/sessions/:tenant/:id': { path: '/admin/sessions/alice/none', status: 404, owned: 'any tenant' },
  'GET /admin/adapters': { status: 200, owned: 'any tenant' },
  'POST /admin/adapters': { body: { name: 'a', path: 'none.gguf' }, status: 500, owned: 'any tenant' },
  'DELETE /admin/adapters/:id{.+}': { path: '/admin/adapters/none', status: 404, owned: 'any tenant' },
  'POST /admin/memory/add': { body: { text: 'about cards' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/get': {
    body: { id: NOBODY },
    status: 404,
    owned: ({ recordId }) => ({ body: { id: recordId }, status: 200 }),
  },
  'POST /admin/memory/search': { body: { text: 'cards' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/remove': { body: { ids: [NOBODY] }, status: 200, owned: 'nothing' },
  'POST /admin/memory/stats': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/health': { body: {}, status: 200, owned: 'any tenant' },
  'POST /admin/memory/neighbours': {
    body: { id: NOBODY },
    status: 404,
    owned: ({ recordId }) => ({ body: { id: recordId }, status: 200 }),
  },
  'POST /admin/memory/link': {
    body: { from: NOBODY, to: '0199a0b4-7c00-7000-8000-00000000fffe', relation: 'cites' },
    status: 404,
    owned: ({ recordId }) => ({ body: { from: recordId, to: recordId, relation: 'cites' }, status: 400 }),
  },
  'POST /admin/memory/list': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/graph': {
    body: { id: NOBODY },
    status: 404,
    owned: ({ recordId }) => ({ body: { id: recordId }, status: 200 }),
  },
  'POST /admin/memory/export': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/import': { body: { records: [{ id: NOBODY }] }, status: 200, owned: 'any tenant' },
  'POST /admin/memory/rotate-key': { body: { passphrase: 'correct horse battery' }, status: 200, owned: 'any tenant' },
  'POST /admin/memory/audit/search': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/audit/stats': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/audit/verify': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/audit/export': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/audit/show': {
    body: { requestId: NOBODY },
    status: 404,
    owned: ({ requestId }) => ({ body: { requestId }, status: 200 }),
  },
  'POST /admin/memory/audit/similar': {
    body: { requestId: NOBODY },
    status: 404,
    owned: ({ requestId }) => ({ body: { requestId }, status: 200 }),
  },
  'POST /admin/memory/audit/decisions': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/sessions/list': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/sessions/show': {
    body: { sessionId: NOBODY },
    status: 404,
    owned: ({ sessionId }) => ({ body: { sessionId }, status: 200 }),
  },
  'POST /admin/memory/sessions/rm': {
    body: { sessionId: NOBODY },
    status: 404,
    owned: ({ sessionId }) => ({ body: { sessionId }, status: 200 }),
  },
  'POST /admin/memory/policies/list': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/policies/get': { body: { policyType: 'ewc' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/policies/history': { body: { policyType: 'ewc' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/policies/rollback': {
    body: { policyType: 'ewc', toVersion: 1 },
    status: 404,
    owned: 'any tenant',
  },
  'POST /admin/memory/tenants/erase': {
    path: '/admin/memory/tenants/erase?tenant=dora',
    body: { confirm: 'dora' },
    status: 200,
    owned: 'any tenant',
  },
  'POST /admin/learning/feedback': {
    body: { requestId: NOBODY, thumbs: 'up' },
    status: 404,
    owned: ({ requestId }) => ({ body: { requestId, thumbs: 'up' }, status: 200 }),
  },
  'POST /admin/learning/status': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/learning/health': { body: {}, status: 200, owned: 'any tenant' },
  'POST /admin/learning/patterns': { body: { text: 'cards' }, status: 200, owned: 'nothing' },
  'POST /admin/learning/series': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/learning/run': { body: { waitMs: 50_000 }, status: 200, owned: 'any tenant' },
  'POST /admin/learning/cancel': { body: {}, status: 404, owned: 'any tenant' },
  'POST /admin/learning/history': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/learning/diff': { body: { from: 1, to: 2 }, status: 404, owned: 'nothing' },
  'POST /admin/learning/rollback': { body: { toVersion: 1 }, status: 404, owned: 'any tenant' },
  'POST /admin/learning/reset': { body: {}, status: 200, owned: 'any tenant' },
  'POST /admin/learning/forget': { body: { requestId: NOBODY }, status: 200, owned: 'nothing' },
  'POST /admin/learning/export': { body: {}, status: 404, owned: 'nothing' },
  'GET /openapi.json': { status: 200, owned: 'nothing' },
};
/** So that a route without a line fails in its own tests, and does not take the others with it. */
const callOf = (name: string): Call => CALLS[name] ?? { status: 0, owned: () => ({ status: 0 }) };

const nameOf = ({ method, path }: Route): string => `${method} ${path}`;
/** The scope a key needs at least, by the scope of the route. */
const ENOUGH = {
  public: [],
  read: ['read-only'],
  inference: ['inference'],
  operate: ['read-only'],
  admin: ['admin'],
} as const;
const TOO_LITTLE = {
  public: [],
  read: [],
  inference: ['read-only'],
  operate: ['inference'],
  admin: ['read-only', 'inference'],
} as const;

let server: TestServer;
let remembered: TestLearning;
const tokens = new Map<string, string>();

beforeAll(async () => {
  const { model } = await createToyRuntime();
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  remembered = await createTestLearning({}, 'toy');
  const { memory, learning } = remembered;
  server = createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false, memory, learning });
  for (const scope of ['inference', 'admin', 'read-only'] as KeyScope[]) {
    tokens.set(scope, (await keys.create({ name: scope, tenant: 'alice', scopes: [scope] })).token);
  }
  tokens.set('bob', (await keys.create({ name: 'bob', tenant: 'bob', scopes: ['inference'] })).token);
  tokens.set('root', (await keys.create({ name: 'root', tenant: 'carol', scopes: ['admin'] })).token);
  const revoked = await keys.create({ name: 'old', tenant: 'alice', scopes: ['inference', 'admin', 'read-only'] });
  keys.revoke(revoked.key.id);
  tokens.set('revoked', revoked.token);
});

async function call(
  route: Route,
  token: string | null,
  { path = route.path, body }: Pick<Call, 'path' | 'body'> = callOf(nameOf(route)),
): Promise<Response> {
  return server.fetch(
    new Request(`http://localhost${path}`, {
      method: route.method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
}

/** The body of a failure, in the format of the route. */
function failureOf(
  route: Route,
  { status, headers }: Response,
  { type, code }: { type: string; code: string },
): object {
  const message = expect.any(String) as string;
  return route.errors.body(
    { status, type, code, message, param: null, retryAfterSeconds: null },
    headers.get('x-request-id')!,
  );
}

test('[S1] the calls below name every route', () => {
  expect(ROUTES.map(nameOf).sort()).toEqual(Object.keys(CALLS).sort());
});

describe.each(ROUTES.map((route) => [nameOf(route), route] as const))('[S1] %s', (name, route) => {
  const { status, owned } = callOf(name);
  const isPublic = route.scope === 'public';

  test('without a key, with a wrong one, with a revoked one', async () => {
    const good = tokens.get('admin')!;
    const wrong = good.slice(0, -1) + (good.endsWith('A') ? 'B' : 'A');
    for (const token of [null, 'nonsense', wrong, tokens.get('revoked')!]) {
      const response = await call(route, token);
      expect(response.status).toBe(isPublic ? status : 401);
      expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
      if (isPublic) continue;
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
      const code = token === null ? 'missing_api_key' : 'invalid_api_key';
      expect(await response.json()).toEqual(failureOf(route, response, { type: 'authentication_error', code }));
    }
  });

  test('with a key that allows it, and with one that allows too little', async () => {
    for (const scope of [...ENOUGH[route.scope], 'admin']) {
      expect((await call(route, tokens.get(scope)!)).status, scope).toBe(status);
    }
    for (const scope of TOO_LITTLE[route.scope]) {
      const response = await call(route, tokens.get(scope)!);
      expect(response.status, scope).toBe(403);
      const body = failureOf(route, response, { type: 'permission_error', code: 'insufficient_scope' });
      expect(await response.json()).toEqual(body);
    }
  });

  if (owned === 'nothing') return;
  if (owned === 'any tenant') {
    test("[K4] an administrator's key is for all tenants, whatever its own", async () => {
      expect(route.scope).toBe('admin');
      expect((await call(route, tokens.get('bob')!)).status).toBe(403);
      expect((await call(route, tokens.get('root')!)).status).toBe(status);
    });
    return;
  }

  test('[K4] with the key of another tenant', async () => {
    const objects = await makeObjects();
    const { status: owners, ...request } = owned(objects);
    const unknown = owned({
      requestId: crypto.randomUUID(),
      responseId: `resp_${crypto.randomUUID()}`,
      recordId: crypto.randomUUID().replace(/-4/, '-7'),
      sessionId: crypto.randomUUID(),
    });
    const [asBob, asNobody] = [
      await call(route, tokens.get('bob')!, request),
      await call(route, tokens.get('bob')!, unknown),
    ];
    expect([asBob.status, asNobody.status]).toEqual([404, 404]);
    // Nothing in the answer tells a thing of somebody else from one that never was, but its name.
    const bodies = (await Promise.all([asBob.text(), asNobody.text()])).map((text) =>
      text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID'),
    );
    expect(bodies[0]).toBe(bodies[1]);
    expect((await call(route, tokens.get('inference')!, request)).status).toBe(owners);
  });
});

/** A stored response of alice's, with the request it came from; something she had remembered, and a session. */
async function makeObjects(): Promise<Objects> {
  const route = ROUTES.find(({ method, path }) => method === 'POST' && path === '/v1/responses')!;
  const response = await call(route, tokens.get('inference')!);
  const { id } = (await response.json()) as { id: string };
  await settle(); // what is written down, is written down behind the answer
  await remembered.memory.witness.flush();
  const sessionId = crypto.randomUUID();
  await remembered.memory.sessions.touch('alice', sessionId);
  const recordId = await remembered.memory.add('alice', { text: 'about cards' });
  return { requestId: response.headers.get('x-request-id')!, responseId: id, recordId, sessionId };
}

test("[K4] a session of another tenant's has the same name and nothing else in common", async () => {
  const route = ROUTES.find(({ path }) => path === '/v1/chat/completions')!;
  const body = { ...chat, session: 'shared-name' };
  const turns = async (tenant: string): Promise<number[]> => {
    const list = await server.fetch(
      new Request(`http://localhost/admin/sessions/${tenant}`, {
        headers: { authorization: `Bearer ${tokens.get('admin')!}` },
      }),
    );
    const { data } = (await list.json()) as { data: { id: string; num_turns: number }[] };
    return data.filter(({ id }) => id === 'shared-name').map(({ num_turns: numTurns }) => numTurns);
  };
  for (const who of ['inference', 'bob', 'bob']) {
    expect((await call(route, tokens.get(who)!, { body })).status).toBe(200);
  }
  expect([await turns('alice'), await turns('bob')]).toEqual([[1], [2]]);
});

test('[S1] an unknown path needs a key too, and is a 404 with one', async () => {
  const ask = (path: string, token?: string, method = 'GET'): Promise<Response> =>
    server.fetch(new Request(`http://localhost${path}`, { method, headers: token ? { 'x-api-key': token } : {} }));
  for (const [path, method] of [
    ['/', 'GET'],
    ['/v1/nothing', 'GET'],
    ['/v1//models', 'GET'],
    ['/health/', 'GET'],
    ['/HEALTH', 'GET'],
  ]) {
    expect((await ask(path!, undefined, method)).status, path).toBe(401);
    expect((await ask(path!, tokens.get('read-only'), method)).status, path).toBe(404);
  }
});

test("[K4] another tenant's request cannot be judged, and does not exist", async () => {
  const answer = await call(
    ROUTES.find(({ path }) => path === '/v1/chat/completions')!,
    tokens.get('inference')!,
  );
  server.feedbacks.length = 0;
  const { id } = (await answer.json()) as { id: string };
  const judge = (token: string, requestId: string): Promise<Response> =>
    server.fetch(
      new Request('http://localhost/v1/feedback', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ request_id: requestId, score: 0.5, correction: 'better' }),
      }),
    );
  expect((await judge(tokens.get('bob')!, id)).status).toBe(404);
  expect(server.feedbacks).toEqual([]);
  expect((await judge(tokens.get('inference')!, id)).status).toBe(200);
  expect((await judge(tokens.get('inference')!, answer.headers.get('x-request-id')!)).status).toBe(200);
  expect(server.feedbacks).toHaveLength(2);
  expect(server.feedbacks[0]).toMatchObject({
    request: { tenant: 'alice', model: 'toy' },
    score: 0.5,
    thumbs: null,
    correction: 'better',
  });
});
