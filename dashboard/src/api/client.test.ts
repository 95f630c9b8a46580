import { expect, test } from 'vitest';
import { readOrigin } from './chat.ts';
import { createClient } from './client.ts';
import { ApiError } from './errors.ts';

interface SentRequest {
  readonly url: string;
  readonly init: RequestInit;
}

function setUp(respond: () => Response | Promise<Response>, key: { token: string | null } = { token: 'k' }) {
  const requests: SentRequest[] = [];
  const unauthorized: ApiError[] = [];
  const client = createClient({
    key: () => key.token,
    onUnauthorized: (error) => unauthorized.push(error),
    fetch: async (url, init) => {
      requests.push({ url: url as string, init: init! });
      return respond();
    },
  });
  return { client, requests, unauthorized, key };
}
const errorResponse = (status: number): Response =>
  Response.json({ error: { message: 'no', code: 'why' } }, { status, headers: { 'x-request-id': 'r' } });

test('sends the key in a header, never in the URL, and leaves out missing query options', async () => {
  const { client, requests } = setUp(() => Response.json({ ok: true }));
  await client.get('/a', { query: { x: 'a&b', none: null, also: undefined, n: 0 } });
  expect(requests[0]!.url).toBe('/a?x=a%26b&n=0');
  expect(requests[0]!.init).toMatchObject({
    headers: { authorization: 'Bearer k' },
    credentials: 'omit',
    redirect: 'error',
  });
});

test("throws the server's error message with the request id", async () => {
  const { client, unauthorized } = setUp(() => errorResponse(403));
  await expect(client.post('/a', {})).rejects.toMatchObject({
    status: 403,
    code: 'why',
    message: 'no',
    requestId: 'r',
  });
  expect(unauthorized).toEqual([]);
});

test('throws the status when a proxy answers with an HTML page', async () => {
  const { client } = setUp(() => new Response('<h1>Bad gateway', { status: 502, statusText: 'Bad Gateway' }));
  await expect(client.get('/a')).rejects.toMatchObject({ status: 502, message: '502 Bad Gateway' });
});

test('reports an unreachable server but passes aborts through', async () => {
  const down = setUp(() => Promise.reject(new TypeError('Failed to fetch')));
  await expect(down.client.get('/a')).rejects.toMatchObject({
    status: 0,
    code: 'unreachable',
    message: expect.not.stringContaining('Failed to fetch'),
  });
  const aborted = setUp(() => Promise.reject(new DOMException('left', 'AbortError')));
  await expect(aborted.client.get('/a')).rejects.toMatchObject({ name: 'AbortError' });
});

test('calls onUnauthorized for the current key but not for a replaced one', async () => {
  const current = setUp(() => errorResponse(401));
  await expect(current.client.get('/a')).rejects.toBeInstanceOf(ApiError);
  expect(current.unauthorized).toHaveLength(1);
  const key = { token: 'old' as string | null };
  const replaced = setUp(() => {
    key.token = 'new';
    return errorResponse(401);
  }, key);
  await expect(replaced.client.get('/a')).rejects.toBeInstanceOf(ApiError);
  expect(replaced.unauthorized).toEqual([]);
});

test('reads request id, route and sources from the response headers', () => {
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

test('lets small requests outlive the page, as many at once as a browser allows', async () => {
  const waiting: (() => void)[] = [];
  const respond = () => new Promise<Response>((resolve) => waiting.push(() => resolve(Response.json({}))));
  const { client, requests } = setUp(respond);
  const keptAlive = () => requests.map(({ init }) => init.keepalive ?? false);
  const send = (chars: number) => client.post('/a', 'ä'.repeat(chars), { outlivesPage: true });
  const sent = [send(20_000), send(20_000), send(5000), client.post('/a', {})];
  expect(keptAlive()).toEqual([true, false, true, false]);
  for (const answer of waiting) answer();
  await Promise.all(sent);
  const last = send(25_000);
  expect(keptAlive().at(-1)).toBe(true);
  waiting.at(-1)!();
  await last;
});
