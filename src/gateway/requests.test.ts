import { describe, expect, test } from 'vitest';
import type { Route } from '../server/route.ts';
import { requestHeaders, responseHeaders } from './forward-headers.ts';
import { createRouteMatcher } from './match-route.ts';
import { readHints } from './request-hints.ts';
import { beginsAtOnce, isNodeRoute, isRepeatable } from './route-kinds.ts';
import { addVia, createGatewayId, isFromGateway, isFromSelf } from './via.ts';

const routeOf = (method: string, path: string, more: Partial<Route> = {}): Route =>
  ({ method, path, scope: 'inference', ...more }) as Route;

describe('a route', () => {
  const routes = [
    routeOf('GET', '/v1/files/:id'),
    routeOf('DELETE', '/v1/files/:id'),
    routeOf('GET', '/v1/files/all'),
    routeOf('POST', '/v1/files/all'),
    routeOf('GET', '/v1/models/:id{.+}'),
    routeOf('GET', '/v1/files/:id/content'),
    routeOf('GET', '/a.b/:id'),
  ];
  const match = createRouteMatcher(routes);
  test.each([
    ['GET', '/v1/files/all', 2, ['GET', 'POST']],
    ['POST', '/v1/files/all', 3, ['GET', 'POST']],
    ['HEAD', '/v1/files/all', 2, ['GET', 'POST']],
    ['GET', '/v1/files/7', 0, ['GET', 'DELETE']],
    ['HEAD', '/v1/files/7', 0, ['GET', 'DELETE']],
    ['DELETE', '/v1/files/7', 1, ['GET', 'DELETE']],
    ['POST', '/v1/files/7', null, ['GET', 'DELETE']],
    ['GET', '/v1/files/7/content', 5, ['GET']],
    ['GET', '/v1/files/7/8', null, []],
    ['GET', '/v1/files/', null, []],
    ['GET', '/v1/models/a/b', 4, ['GET']],
    ['GET', '/a.b/1', 6, ['GET']],
    ['GET', '/axb/1', null, []],
    ['GET', '/x/a.b/1', null, []],
  ])('of %s %s is found by its path, the ones without parameters first', (method, path, index, allow) => {
    expect(match(method, path)).toEqual({ route: index === null ? null : routes[index], allow });
  });

  test('is repeated if it answers or only reads', () => {
    const repeated = [routeOf('GET', '/x'), routeOf('POST', '/x', { isAnswer: true }), routeOf('POST', '/tokenize')];
    expect(repeated.map(isRepeatable)).toEqual([true, true, true]);
    const once = [routeOf('POST', '/x'), routeOf('POST', '/x', { isAnswer: false }), routeOf('DELETE', '/v1/files/:id')]; // prettier-ignore
    expect(once.map(isRepeatable)).toEqual([false, false, false]);
  });

  test('concerns one node unless it infers or reads, and never for MCP', () => {
    const kinds = (['inference', 'read', 'operate', 'public'] as const).map((scope) => isNodeRoute(routeOf('GET', '/x', { scope }))); // prettier-ignore
    expect(kinds).toEqual([false, false, true, true]);
    expect(isNodeRoute(routeOf('POST', '/mcp'))).toBe(true);
  });
});

describe('the hints of a request', () => {
  const hints = (body: unknown, type: string | null = 'application/json') =>
    readHints(new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body)), type);
  const none = { model: null, promptText: '', stream: null };

  test('are its model and the fields of its prompt, in the order of templates', () => {
    const body = { prompt: 'p', messages: [{ role: 'user' }], system: 's', tools: null, model: 'm', other: 1 };
    expect(hints(body)).toEqual({
      ...none,
      model: 'm',
      promptText: 'system:"s"\nmessages:[{"role":"user"}]\nprompt:"p"',
    });
    expect(hints({ input: 0, instructions: '', model: 'x'.repeat(600) })).toEqual({
      ...none,
      model: 'x'.repeat(512),
      promptText: 'instructions:""\ninput:0',
    });
    expect(hints({ model: 7 }, 'application/problem+json')).toEqual(none);
    expect([hints({ stream: true }).stream, hints({ stream: false }).stream, hints({ stream: 1 }).stream]).toEqual([
      true,
      false,
      null,
    ]);
  });

  test.each(['', 'null', '"text"', '7', '{', '[]', '{"__proto__":{"prompt":"p"}}'])('of %s are none', (body) => {
    expect(hints(body)).toEqual(none);
  });

  test('are none without JSON', () => {
    expect([hints({ model: 'm' }, null), hints({ model: 'm' }, 'text/plain')]).toEqual([none, none]);
    // As curl sends it.
    expect(hints({ model: 'm', stream: false }, 'application/x-www-form-urlencoded')).toEqual({
      ...none,
      model: 'm',
      stream: false,
    });
  });

  test('of more than 64 KiB are read if the body nests at most 1000 levels deep', () => {
    const body = (depth: number, numBytes: number): string => {
      const text = `{"model":"m","prompt":"","x":${'['.repeat(depth)}${']'.repeat(depth)}}`;
      return text.replace('""', `"${'p'.repeat(numBytes - text.length)}"`);
    };
    expect(hints(body(2000, 65_536)).model).toBe('m');
    expect(hints(body(2000, 65_537))).toEqual(none);
    expect(hints(body(900, 65_537)).model).toBe('m');
  });
});

test('[GW25] reads and streams begin at once', () => {
  const begins = (method: 'GET' | 'POST', path: string, stream: boolean | null) =>
    beginsAtOnce({ method, path } as Route, stream);
  expect([
    begins('GET', '/v1/chats', null),
    begins('POST', '/api/chat', null),
    begins('POST', '/v1/completions', true),
  ]).toEqual([true, true, true]);
  expect([begins('POST', '/api/chat', false), begins('POST', '/v1/completions', null)]).toEqual([false, false]);
});

describe('headers', () => {
  test('of the connection stay behind, also those that it names', () => {
    const sent = { te: 'x', 'keep-alive': 'x', 'x-a': '1', 'x-b': '2', accept: 'x' };
    expect(requestHeaders(new Headers({ ...sent, connection: 'keep-alive' }))).toEqual({ accept: 'x', 'x-a': '1', 'x-b': '2' }); // prettier-ignore
    expect(requestHeaders(new Headers({ ...sent, connection: 'close, X-A' }))).toEqual({ accept: 'x', 'x-b': '2' });
    expect(requestHeaders(new Headers(sent))).toEqual({ accept: 'x', 'x-a': '1', 'x-b': '2' });
    expect(responseHeaders({ connection: 'x-a', 'x-a': '1', 'x-b': '2', 'content-length': '3' })).toEqual({ 'x-b': '2' }); // prettier-ignore
    expect(responseHeaders({ 'x-ruvllm-fleet-prompt': '1', via: 'x', referer: 'y' })).toEqual({ via: 'x', referer: 'y' }); // prettier-ignore
  });

  test('of a client that say who it is, or are of browsers and the fleet, stay behind', () => {
    const names = [
      'forwarded',
      'x-real-ip',
      'via',
      'x-forwarded-for',
      'x-forwarded-proto',
      'origin',
      'referer',
      'sec-fetch-site',
      'x-ruvllm-fleet-ask',
      'traceparent',
      'tracestate',
    ];
    expect(requestHeaders(new Headers(names.map((name) => [name, 'x'])))).toEqual({});
  });

  test('say which gateways a request has passed', () => {
    const id = createGatewayId();
    expect(id).toMatch(/^[0-9a-f]{16}$/);
    const [none, own, other] = [{}, { via: addVia(new Headers(), id) }, { via: '1.1 proxy' }].map((one) => new Headers(one)); // prettier-ignore
    expect(own!.get('via')).toBe(`1.1 ruvllm-gateway-${id}`);
    expect(addVia(other!, id)).toBe(`1.1 proxy, 1.1 ruvllm-gateway-${id}`);
    expect([none!, own!, other!].map(isFromGateway)).toEqual([false, true, false]);
    expect([none!, own!, other!].map((one) => isFromSelf(one, id))).toEqual([false, true, false]);
    expect(isFromSelf(own!, 'another id')).toBe(false);
  });
});
