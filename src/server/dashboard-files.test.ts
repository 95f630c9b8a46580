import { describe, expect, test } from 'vitest';
import { createTestServer, entryOf } from '../../test/support/test-server.ts';
import { type DashboardFiles, MISSING_DASHBOARD } from './dashboard-files.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const files: DashboardFiles = new Map([
  ['/', { contentType: 'text/html; charset=utf-8', etag: '"page"', bodies: { identity: bytes('<p>page') } }],
  [
    '/engine/index.js',
    { contentType: 'text/javascript; charset=utf-8', etag: '"e"', bodies: { identity: bytes('engine') } },
  ],
  [
    '/assets/a-1.js',
    {
      contentType: 'text/javascript; charset=utf-8',
      etag: '"a"',
      bodies: { identity: bytes('plain'), br: bytes('as br'), gzip: bytes('as gzip') },
    },
  ],
]);

const never = (): never => {
  throw new Error('no model is needed here');
};
const serve = (isOpen: boolean, dashboard: DashboardFiles | null = files) =>
  createTestServer([entryOf('toy', never)], { isOpen, dashboard });
const ask = (path: string, headers: Record<string, string> = {}, { isOpen = false, method = 'GET' } = {}) =>
  serve(isOpen).fetch(new Request(`http://localhost${path}`, { method, headers }));

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

describe('[D1] the page', () => {
  test('only scripts of the engine may compile WebAssembly', async () => {
    const response = await ask('/engine/index.js');
    expect(response.headers.get('content-security-policy')).toBe(
      CSP.replace("script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'"),
    );
    // Not a name with a hash: an update must replace it.
    expect(response.headers.get('cache-control')).toBe('no-cache');
  });

  test.each(['/', '/assets/a-1.js'])('%s needs no key and allows only its own files', async (path) => {
    const response = await ask(path);
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-security-policy': CSP,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-embedder-policy': 'require-corp',
      'cross-origin-resource-policy': 'same-origin',
    });
  });

  test('all other paths still need a key', async () => {
    for (const path of [
      '/index.html',
      '/v1/whoami',
      '/v1/models',
      '/assets',
      '/assets/',
      '/assets/a/b',
      '//assets/a-1.js',
    ]) {
      expect((await ask(path)).status, path).toBe(401);
    }
  });

  test('an unknown file is a 404 in JSON, whatever its name', async () => {
    for (const path of ['/assets/none.js', '/assets/..%2f..%2fpackage.json', '/assets/a-1.js%00']) {
      const response = await ask(path, {}, { isOpen: true });
      expect(response.status, path).toBe(404);
      expect(await response.json()).toMatchObject({ error: { code: 'unknown_url' } });
    }
  });

  test('dashboard.json says whether a key is needed', async () => {
    expect(await (await ask('/dashboard.json')).json()).toEqual({ needs_key: true });
    expect(await (await ask('/dashboard.json', {}, { isOpen: true })).json()).toEqual({ needs_key: false });
  });

  test('a server without a dashboard has none of its paths', async () => {
    for (const path of ['/assets/a-1.js', '/dashboard.json']) {
      const fetch = (isOpen: boolean) => serve(isOpen, null).fetch(new Request(`http://localhost${path}`));
      expect([(await fetch(false)).status, (await fetch(true)).status]).toEqual([401, 404]);
    }
    // Ollama's clients ask for it to find out whether a server runs.
    const answer = await serve(false, null).fetch(new Request('http://localhost/'));
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
  });
});

test('[D3] a page says how to build a missing dashboard', async () => {
  const fetch = (path: string) => serve(true, MISSING_DASHBOARD).fetch(new Request(`http://localhost${path}`));
  const response = await fetch('/');
  expect([response.status, response.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
  expect(await response.text()).toMatch(/The dashboard was not built.+npm run build/);
  expect((await fetch('/v1/models')).status).toBe(200);
});

describe('[D2] a file', () => {
  test.each([
    ['', 'plain', null],
    ['gzip', 'as gzip', 'gzip'],
    ['gzip, deflate, br', 'as br', 'br'],
    ['br;q=0, gzip;q=0.5', 'as gzip', 'gzip'],
    ['BR', 'as br', 'br'],
    ['brotli', 'plain', null],
  ])('is packed as %j allows', async (accepted, text, encoding) => {
    const response = await ask('/assets/a-1.js', accepted === '' ? {} : { 'accept-encoding': accepted });
    expect(await response.text()).toBe(text);
    expect(response.headers.get('content-encoding')).toBe(encoding);
    expect(response.headers.get('content-length')).toBe(String(text.length));
    expect(response.headers.get('vary')).toBe('accept-encoding');
  });

  test('with a hash in its name is cached permanently; the page is revalidated each time', async () => {
    expect((await ask('/assets/a-1.js')).headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect((await ask('/')).headers.get('cache-control')).toBe('no-cache');
    for (const tag of ['"page"', 'W/"page"', '"x", "page"', '*']) {
      const response = await ask('/', { 'if-none-match': tag });
      expect([response.status, await response.text()]).toEqual([304, '']);
    }
    expect((await ask('/', { 'if-none-match': '"other"' })).status).toBe(200);
  });

  test('is read-only', async () => {
    expect((await ask('/', {}, { method: 'HEAD', isOpen: true })).status).toBe(200);
    const response = await ask('/', {}, { method: 'POST', isOpen: true });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
  });
});
