import { expect, test } from 'vitest';
import { readOrigin } from './chat.ts';
import { createClient } from './client.ts';
import { ApiError } from './errors.ts';

interface Sent {
  readonly url: string;
  readonly init: RequestInit;
}

function setUp(respond: () => Response | Promise<Response>, key: { token: string | null } = { token: 'k' }) {
  const sent: Sent[] = [];
  const refused: ApiError[] = [];
  const client = createClient({
    key: () => key.token,
    onUnauthorized: (error) => refused.push(error),
    fetch: async (url, init) => {
      sent.push({ url: url as string, init: init! });
      return respond();
    },
  });
  return { client, sent, refused, key };
}
const refusal = (status: number): Response =>
  Response.json({ error: { message: 'no', code: 'why' } }, { status, headers: { 'x-request-id': 'r' } });

test('the key goes into a header, never into an address; options that are not given are left out', async () => {
  const { client, sent } = setUp(() => Response.json({ ok: true }));
  await client.get('/a', { query: { x: 'a&b', none: null, also: undefined, n: 0 } });
  expect(sent[0]!.url).toBe('/a?x=a%26b&n=0');
  expect(sent[0]!.init).toMatchObject({
    headers: { authorization: 'Bearer k' },
    credentials: 'omit',
    redirect: 'error',
  });
});

test('a failure has the words of the server and the name of the request', async () => {
  const { client, refused } = setUp(() => refusal(403));
  await expect(client.post('/a', {})).rejects.toMatchObject({
    status: 403,
    code: 'why',
    message: 'no',
    requestId: 'r',
  });
  expect(refused).toEqual([]);
});

test("a proxy's page is a failure too", async () => {
  const { client } = setUp(() => new Response('<h1>Bad gateway', { status: 502, statusText: 'Bad Gateway' }));
  await expect(client.get('/a')).rejects.toMatchObject({ status: 502, message: '502 Bad Gateway' });
});

test('a server that cannot be reached is said to be so; one that was left is not', async () => {
  const down = setUp(() => Promise.reject(new TypeError('Failed to fetch')));
  await expect(down.client.get('/a')).rejects.toMatchObject({ status: 0, code: 'unreachable' });
  const left = setUp(() => Promise.reject(new DOMException('left', 'AbortError')));
  await expect(left.client.get('/a')).rejects.toMatchObject({ name: 'AbortError' });
});

test('a key that is refused is told of, one that was given up meanwhile is not', async () => {
  const now = setUp(() => refusal(401));
  await expect(now.client.get('/a')).rejects.toBeInstanceOf(ApiError);
  expect(now.refused).toHaveLength(1);
  const key = { token: 'old' as string | null };
  const late = setUp(() => {
    key.token = 'new';
    return refusal(401);
  }, key);
  await expect(late.client.get('/a')).rejects.toBeInstanceOf(ApiError);
  expect(late.refused).toEqual([]);
});

test('what an answer comes from stands in its headers', () => {
  const headers = new Headers({
    'x-request-id': 'id',
    'x-route': 'small',
    'x-route-reason': 'confident',
    'x-memory-sources': '1=document:a:b 2=fact:c nonsense',
  });
  expect(readOrigin(headers)).toEqual({
    requestId: 'id',
    route: { candidate: 'small', reason: 'confident' },
    sources: [
      { number: 1, kind: 'document', id: 'a:b' },
      { number: 2, kind: 'fact', id: 'c' },
    ],
  });
  expect(readOrigin(new Headers())).toEqual({ requestId: '', route: null, sources: [] });
});
