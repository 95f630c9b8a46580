import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createFakeIo } from '../../../test/support/cli-io.ts';
import { openHttpClient } from './http-client.ts';

let server: Server | null = null;
afterEach(() => void server?.close());

/** Starts a server with a fixed response that records its requests. */
async function startServer(status: number, body: string, headers: Record<string, string> = {}) {
  const requests: { url: string; key: string | undefined; body: string }[] = [];
  server = createServer((request: IncomingMessage, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      requests.push({ url: request.url!, key: request.headers.authorization, body: text });
      response.writeHead(status, headers).end(body);
    });
  });
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

const open = (values: Record<string, unknown>, environment: Record<string, string> = {}) =>
  openHttpClient({ io: createFakeIo({ environment }), values });
const failure = (message: string) => JSON.stringify({ error: { message, code: 'x', param: 'k' } });

describe('memory of a server', () => {
  test('calls the path of the operation with key and tenant', async () => {
    const { url, requests } = await startServer(200, '{"numRemoved":1}');
    const client = open({ '--url': `${url}/v1/`, '--tenant': 'a b&c' }, { RUVLLM_API_KEY: 'secret' });
    expect(await client.call('audit.verify', { x: 1 })).toEqual({ numRemoved: 1 });
    expect(requests).toEqual([
      { url: '/admin/memory/audit/verify?tenant=a+b%26c', key: 'Bearer secret', body: '{"x":1}' },
    ]);
  });

  test.each([
    [400, 'invalid_option'],
    [401, 'invalid_option'],
    [403, 'invalid_option'],
    [404, 'not_found'],
    [409, 'conflict'],
    [429, 'overloaded'],
    [500, 'io'],
    [501, 'unsupported'],
    [503, 'overloaded'],
  ])('maps status %i to %s with the message of the server', async (status, code) => {
    const { url } = await startServer(status, failure('no'));
    await expect(open({ '--url': url }).call('memory.stats', {})).rejects.toMatchObject({
      code,
      message: 'no',
      data: { status, option: 'k' },
    });
  });

  test('rejects a response of another server', async () => {
    for (const [status, body] of [
      [200, 'hello'],
      [200, 'null'],
      [502, '<html>'],
    ] as const) {
      const { url } = await startServer(status, body);
      await expect(open({ '--url': url }).call('memory.stats', {})).rejects.toMatchObject({
        code: 'io',
        message: `${url} sent an unexpected response: status ${status}, ${body.length} characters`,
      });
      server!.close();
    }
  });

  test('does not follow a redirect with an API key', async () => {
    const { url, requests } = await startServer(307, '', { location: '/elsewhere' });
    await expect(open({ '--url': url, '--api-key': 'secret' }).call('memory.stats', {})).rejects.toMatchObject({ code: 'io' }); // prettier-ignore
    expect(requests).toHaveLength(1);
  });

  test.each(['', 'localhost:8080', 'ftp://x', 'file:///etc/passwd'])('rejects --url %j', (url) => {
    expect(() => open({ '--url': url })).toThrow(/^--url must be a URL such as/);
  });
});
