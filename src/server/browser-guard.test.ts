import { expect, test } from 'vitest';
import { createTestServer } from '../../test/support/test-server.ts';

const get = (headers: Record<string, string>, method = 'GET'): Request =>
  new Request('http://127.0.0.1:8080/health', { method, headers });
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

test('[K6] accepts only loopback host names on loopback, with any port', async () => {
  const { fetch } = createTestServer([], { browsers: { hosts: LOOPBACK, corsOrigins: [] } });
  for (const host of ['localhost', 'localhost:8080', '127.0.0.1:1', '[::1]:8080', 'LOCALHOST:8080']) {
    expect((await fetch(get({ host }))).status, host).toBe(200);
  }
  for (const host of ['evil.example', 'localhost.evil.example:8080', '127.0.0.1.evil.example', '', '10.0.0.1']) {
    const response = await fetch(get({ host }));
    expect(response.status, host).toBe(403);
    expect(await response.json()).toMatchObject({ error: { code: 'host_not_allowed' } });
  }
});

test('[K6] rejects pages of other sites and accepts its own', async () => {
  const { fetch } = createTestServer([], { browsers: { hosts: LOOPBACK, corsOrigins: [] } });
  const ask = (origin: string): Promise<Response> => fetch(get({ host: 'localhost:8080', origin }));
  expect((await ask('http://localhost:8080')).status).toBe(200);
  for (const origin of ['https://evil.example', 'null', 'http://localhost:9999', 'nonsense']) {
    const response = await ask(origin);
    expect(response.status, origin).toBe(403);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  }
});

test('[K6] rejects what pages of other sites embed, and accepts links and its own requests', async () => {
  const { fetch } = createTestServer([], { browsers: { hosts: LOOPBACK, corsOrigins: ['https://good.example'] } });
  const ask = async (site: string, mode: string): Promise<number> =>
    (await fetch(get({ host: 'localhost:8080', 'sec-fetch-site': site, 'sec-fetch-mode': mode }))).status;
  for (const site of ['cross-site', 'same-site']) {
    expect([site, await ask(site, 'no-cors')]).toEqual([site, 403]);
    expect([site, await ask(site, 'navigate')]).toEqual([site, 200]);
  }
  for (const site of ['none', 'same-origin']) expect([site, await ask(site, 'no-cors')]).toEqual([site, 200]);
});

test('[K6] rejects reports that browsers send by themselves, and forms of other sites that navigate', async () => {
  const { fetch } = createTestServer([], { browsers: { hosts: LOOPBACK, corsOrigins: [] } });
  const post = async (path: string, headers: Record<string, string>): Promise<unknown> => {
    const url = `http://localhost:8080${path}`;
    const response = await fetch(new Request(url, { method: 'POST', headers, body: '{"text":"planted","name":"x"}' }));
    return ((await response.json()) as { error?: { code?: string } }).error?.code;
  };
  const types = [
    'application/reports+json',
    'Application/CSP-Report ; x=y',
    'application/expect-ct-report+json',
    'text/ping',
  ];
  for (const type of types) {
    for (const path of [
      '/admin/memory/add',
      '/admin/memory/documents?name=x',
      '/v1/files',
      '/v1/responses',
      '/nowhere',
    ]) {
      expect([type, path, await post(path, { 'content-type': type })]).toEqual([type, path, 'origin_not_allowed']);
    }
  }
  for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x']) {
    const site = { 'content-type': type, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    expect(await post('/admin/memory/documents?name=x', site)).toBe('origin_not_allowed');
    expect(await post('/admin/memory/documents?name=x', { 'content-type': type })).toBe('not_implemented');
  }
});

test('sends CORS headers to allowed sites', async () => {
  const { fetch } = createTestServer([], {
    isOpen: false,
    browsers: { hosts: LOOPBACK, corsOrigins: ['https://good.example'] },
  });
  const headers = { host: 'localhost', origin: 'https://good.example', 'access-control-request-method': 'POST' };
  const preflight = await fetch(get(headers, 'OPTIONS'));
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get('access-control-allow-origin')).toBe('https://good.example');
  expect((await fetch(get({ ...headers, origin: 'https://evil.example' }, 'OPTIONS'))).status).toBe(403);
});
