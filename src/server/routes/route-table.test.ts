import { beforeAll, describe, expect, test } from 'vitest';
import { settle } from '../../../test/support/manual-clock.ts';
import { createMemoryKeys, createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createKeyStore, KEY_SCOPES } from '../keys/key-store.ts';
import type { Route } from '../route.ts';
import { createTestLearning, type TestLearning } from '../../runtime/learning/operations/harness.contract.ts';
import { type Objects, type Call, CALLS, chat } from './route-calls.contract.ts';
import { ROUTES } from './table.ts';

/** A route without a line fails only in its own tests. */
const callOf = (name: string): Call => CALLS[name] ?? { status: 0, owned: () => ({ status: 0 }) };

const nameOf = ({ method, path }: Route): string => `${method} ${path}`;
/** The minimum scope of a key, by scope of the route. */
const ENOUGH = {
  public: [],
  read: ['read-only'],
  inference: ['inference'],
  operate: ['read-only'],
  download: ['download'],
  admin: ['admin'],
} as const;
const TOO_LITTLE = {
  public: [],
  read: [],
  inference: ['read-only'],
  operate: ['inference'],
  download: ['read-only', 'inference'],
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
  for (const scope of KEY_SCOPES) {
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

/** The error of a response, in the format of the route. */
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

test('[S1] the calls cover every route', () => {
  expect(ROUTES.map(nameOf).sort()).toEqual(Object.keys(CALLS).sort());
});

describe.each(ROUTES.map((route) => [nameOf(route), route] as const))('[S1] %s', (name, route) => {
  const { status, owned } = callOf(name);
  const isPublic = route.scope === 'public';

  test('rejects missing, wrong and revoked keys', async () => {
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

  test('accepts a key with the scope and rejects one without', async () => {
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
    test('[K4] an admin key is valid for all tenants', async () => {
      expect(route.scope).toBe('admin');
      expect((await call(route, tokens.get('bob')!)).status).toBe(403);
      expect((await call(route, tokens.get('root')!)).status).toBe(status);
    });
    return;
  }

  test('[K4] hides objects from the key of another tenant', async () => {
    const objects = await makeObjects();
    const { status: owners, ...request } = owned(objects);
    const unknown = owned({
      requestId: crypto.randomUUID(),
      responseId: `resp_${crypto.randomUUID()}`,
      conversationId: `conv_${crypto.randomUUID()}`,
      itemId: `msg_${crypto.randomUUID()}_0`,
      chatId: `chatcmpl-${crypto.randomUUID()}`,
      fileId: `file-${crypto.randomUUID()}`,
      batchId: `batch_${crypto.randomUUID()}`,
      dashboardChatId: crypto.randomUUID(),
      recordId: crypto.randomUUID().replace(/-4/, '-7'),
      documentId: crypto.randomUUID(),
      sessionId: crypto.randomUUID(),
    });
    const [asBob, asMissing] = [
      await call(route, tokens.get('bob')!, request),
      await call(route, tokens.get('bob')!, unknown),
    ];
    expect([asBob.status, asMissing.status]).toEqual([404, 404]);
    // Except for the name, the response for another tenant's object equals the one for a missing object.
    const bodies = (await Promise.all([asBob.text(), asMissing.text()])).map((text) =>
      text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID'),
    );
    expect(bodies[0]).toBe(bodies[1]);
    expect((await call(route, tokens.get('inference')!, request)).status).toBe(owners);
  });
});

/** Creates stored objects of alice, with a request, a record and a session. */
async function makeObjects(): Promise<Objects> {
  const create = (to: string, body?: object): Promise<Response> => {
    const route = ROUTES.find(({ method, path }) => method === 'POST' && path === to)!;
    return call(route, tokens.get('inference')!, body === undefined ? undefined : { body });
  };
  const idOf = async (response: Response): Promise<string> => ((await response.json()) as { id: string }).id;
  const response = await create('/v1/responses');
  const responseId = await idOf(response);
  const conversationId = await idOf(await create('/v1/conversations', { items: chat.messages }));
  const itemId = `msg_${conversationId.slice('conv_'.length)}_0`;
  const chatId = await idOf(await create('/v1/chat/completions', { ...chat, store: true }));
  const { fileId, batchId } = await makeBatch();
  const dashboardChatId = crypto.randomUUID();
  await call(
    ROUTES.find(({ method, path }) => method === 'POST' && path === '/v1/chats/:id')!,
    tokens.get('inference')!,
    {
      path: `/v1/chats/${dashboardChatId}`,
      body: { title: 'Cards', version: 0, content: {} },
    },
  );
  await settle(); // the audit entry is written after the response
  await remembered.memory.audit.flush();
  const sessionId = crypto.randomUUID();
  await remembered.memory.sessions.touch('alice', sessionId);
  const recordId = await remembered.memory.add('alice', { text: 'about cards' });
  const { id: documentId } = await remembered.memory.documents.add('alice', {
    name: 'cards.md',
    content: 'about cards',
  });
  const requestId = response.headers.get('x-request-id')!;
  return {
    requestId,
    responseId,
    conversationId,
    itemId,
    chatId,
    fileId,
    batchId,
    dashboardChatId,
    recordId,
    documentId,
    sessionId,
  };
}

/** A file of alice and a batch of it that has ended. */
async function makeBatch(): Promise<{ fileId: string; batchId: string }> {
  const send = async (method: string, path: string, body?: BodyInit, type?: string): Promise<any> => {
    const headers = { authorization: `Bearer ${tokens.get('inference')!}`, ...(type && { 'content-type': type }) };
    const request = new Request(`http://localhost${path}`, { method, headers, ...(body && { body }) });
    return (await server.fetch(request)).json();
  };
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob(['no request']), 'requests.jsonl');
  const { id: fileId } = await send('POST', '/v1/files', form);
  const wish = { input_file_id: fileId, endpoint: '/v1/completions', completion_window: '24h' };
  let batch = await send('POST', '/v1/batches', JSON.stringify(wish), 'application/json');
  while (batch.status !== 'failed') {
    await settle();
    batch = await send('GET', `/v1/batches/${batch.id}`);
  }
  return { fileId: fileId as string, batchId: batch.id as string };
}

test('[K4] sessions of two tenants with the same name are unrelated', async () => {
  const route = ROUTES.find(({ method, path }) => method === 'POST' && path === '/v1/chat/completions')!;
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

test('[S1] an unknown path needs a key, and is a 404 with one', async () => {
  const ask = (path: string, token?: string, method = 'GET'): Promise<Response> =>
    server.fetch(new Request(`http://localhost${path}`, { method, headers: token ? { 'x-api-key': token } : {} }));
  for (const [path, method] of [
    ['/nothing', 'GET'],
    ['/v1/nothing', 'GET'],
    ['/v1//models', 'GET'],
    ['/health/', 'GET'],
    ['/HEALTH', 'GET'],
  ]) {
    expect((await ask(path!, undefined, method)).status, path).toBe(401);
    expect((await ask(path!, tokens.get('read-only'), method)).status, path).toBe(404);
  }
});

test("[K4] feedback on another tenant's request is a 404", async () => {
  const answer = await call(
    ROUTES.find(({ method, path }) => method === 'POST' && path === '/v1/chat/completions')!,
    tokens.get('inference')!,
  );
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
  const requestId = answer.headers.get('x-request-id')!;
  const stored = () => remembered.learning.trajectories.get('alice', requestId);
  await remembered.learning.settle();
  expect(await stored()).toMatchObject({ feedback: [] });
  expect((await judge(tokens.get('inference')!, id)).status).toBe(200);
  expect((await judge(tokens.get('inference')!, requestId)).status).toBe(200);
  const rating = { score: 0.5, hasCorrection: true };
  expect(await stored()).toMatchObject({ model: 'toy', correction: 'better', feedback: [rating, rating] });
});
