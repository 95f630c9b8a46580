// What only a socket can do to a server: heads without an end, huge heads, bodies that never come.
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';

let server: DistServer;
beforeAll(async () => {
  if (isServerBuilt) server = await startDistServer({ timeouts: { headersMs: 300, requestMs: 600, checkMs: 50 } });
});
afterAll(() => server?.[Symbol.asyncDispose]());

/** Sends bytes as they are and reads until the server closes. */
function talk(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => socket.write(text));
    let answer = '';
    socket.setEncoding('utf8').on('data', (part: string) => (answer += part));
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

describe.skipIf(!isServerBuilt)('sockets', () => {
  test('64 KiB of headers are a 431', async () => {
    const answer = await talk(`GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ${'a'.repeat(65_536)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 431 /);
  });

  test('a head that never ends, and a body that never comes, are given up', async () => {
    expect(await talk('GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ')).toMatch(/^HTTP\/1.1 408 /);
    const head =
      'POST /tokenize HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n';
    const answer = await talk(`${head}{"content":`);
    expect(answer === '' || answer.startsWith('HTTP/1.1 4')).toBe(true);
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
  });

  test('[K6] the wrong host is refused', async () => {
    const answer = await talk('GET /health HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1.1 403 /);
  });

  test('a body larger than the limit is refused before it is sent', async () => {
    const head =
      'POST /tokenize HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nconnection: close\r\n';
    expect(await talk(`${head}content-length: 99999999\r\n\r\n{`)).toMatch(/^HTTP\/1.1 413 /);
  });
});
