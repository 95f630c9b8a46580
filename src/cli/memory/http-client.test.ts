import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createFakeIo } from '../../../test/support/cli-io.ts';
import { openHttpClient } from './http-client.ts';

let server: Server | null = null;
afterEach(() => void server?.close());

/** A server that answers once as told, and says what it was asked. */
async function answering(status: number, body: string, headers: Record<string, string> = {}) {
  const asked: { url: string; key: string | undefined; body: string }[] = [];
  server = createServer((request: IncomingMessage, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      asked.push({ url: request.url!, key: request.headers.authorization, body: text });
      response.writeHead(status, headers).end(body);
    });
  });
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

const open = (values: Record<string, unknown>, environment: Record<string, string> = {}) =>
  openHttpClient({ io: createFakeIo({ environment }), values });
const failure = (message: string) => JSON.stringify({ error: { message, code: 'x', param: 'k' } });

describe('a memory behind HTTP', () => {
  test('asks where the operation is, with key and tenant', async () => {
    const { url, asked } = await answering(200, '{"numRemoved":1}');
    const client = open({ '--url': `${url}/v1/`, '--tenant': 'a b&c' }, { RUVLLM_API_KEY: 'secret' });
    expect(await client.call('audit.verify', { x: 1 })).toEqual({ numRemoved: 1 });
    expect(asked).toEqual([
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
  ])('a %i is %s, in the words of the server', async (status, code) => {
    const { url } = await answering(status, failure('no'));
    await expect(open({ '--url': url }).call('memory.stats', {})).rejects.toMatchObject({
      code,
      message: 'no',
      data: { status, option: 'k' },
    });
  });

  test('what is no answer of ours is an error that says so', async () => {
    for (const [status, body] of [
      [200, 'hello'],
      [200, 'null'],
      [502, '<html>'],
    ] as const) {
      const { url } = await answering(status, body);
      await expect(open({ '--url': url }).call('memory.stats', {})).rejects.toMatchObject({
        code: 'io',
        message: `${url} answered ${status} with ${body.length} characters that are no answer`,
      });
      server!.close();
    }
  });

  test('a key is not taken elsewhere by a redirect', async () => {
    const { url, asked } = await answering(307, '', { location: '/elsewhere' });
    await expect(open({ '--url': url, '--api-key': 'secret' }).call('memory.stats', {})).rejects.toMatchObject({ code: 'io' }); // prettier-ignore
    expect(asked).toHaveLength(1);
  });

  test.each(['', 'localhost:8080', 'ftp://x', 'file:///etc/passwd'])('--url %j is none', (url) => {
    expect(() => open({ '--url': url })).toThrow(/^--url must be such as/);
  });
});
