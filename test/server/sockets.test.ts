// Misuse of sockets: endless heads, huge heads, bodies that never come, bytes that are not HTTP.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';
import { hasOpenapi, violationsOf } from '../support/openapi-schemas.ts';
import { parseAnswers, talk } from '../support/raw-http.ts';
import { withStreamBeside } from '../support/stream-beside.ts';

let server: DistServer;
beforeAll(async () => {
  // Many times what normal requests need on a shared machine: only endless ones may reach them.
  const timeouts = { headersMs: 3000, requestMs: 6000, checkMs: 50 };
  if (isServerBuilt) server = await startDistServer({ timeouts, contextLength: 4096 });
});
afterAll(() => server?.[Symbol.asyncDispose]());

const HOST = 'host: 127.0.0.1\r\nconnection: close\r\n';
const JSON_HEAD = `POST /tokenize HTTP/1.1\r\n${HOST}content-type: application/json\r\n`;
const get = (path: string): string => `GET ${path} HTTP/1.1\r\n${HOST}\r\n`;

/** Rejections: the text sent, the status, the code in the body. */
const REFUSED: Readonly<Record<string, readonly [text: string, status: number, code: string]>> = {
  '64 KiB of headers': [`GET /health HTTP/1.1\r\n${HOST}x: ${'a'.repeat(65_536)}\r\n\r\n`, 431, 'headers_too_large'],
  '2,000 headers': [
    `GET /health HTTP/1.1\r\n${HOST}${'x: a-header-of-it\r\n'.repeat(2000)}\r\n`,
    431,
    'headers_too_large',
  ],
  'an endless head': ['GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ', 408, 'request_timeout'],
  'a body that never comes': [`${JSON_HEAD}content-length: 50\r\n\r\n{"content":`, 408, 'request_timeout'],
  'a chunked body that never ends': [
    `${JSON_HEAD}transfer-encoding: chunked\r\n\r\n4\r\n{"co\r\n`,
    408,
    'request_timeout',
  ],
  'bytes that are not HTTP': ['GARBAGE\r\n\r\n', 400, 'malformed_request'],
  'an unknown method': [`FROB /health HTTP/1.1\r\n${HOST}\r\n`, 400, 'malformed_request'],
  'lines that end in LF': [`GET /health HTTP/1.1\n${HOST}\n\n`, 400, 'malformed_request'],
  'a header with a zero byte': [`GET /health HTTP/1.1\r\n${HOST}x: a\0b\r\n\r\n`, 400, 'malformed_request'],
  'two content lengths': [
    `${JSON_HEAD}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
    'malformed_request',
  ],
  'a negative content length': [`${JSON_HEAD}content-length: -5\r\n\r\n`, 400, 'malformed_request'],
  'a chunk without a size': [`${JSON_HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n`, 400, 'malformed_request'],
  'no host header': ['GET /health HTTP/1.1\r\nconnection: close\r\n\r\n', 400, 'malformed_request'],
  'no host header in HTTP/1.0': ['GET /health HTTP/1.0\r\n\r\n', 400, 'malformed_request'],
  'an invalid host': ['GET /health HTTP/1.1\r\nhost: a b\r\nconnection: close\r\n\r\n', 400, 'malformed_request'],
  'a host with user info': [
    'GET /health HTTP/1.1\r\nhost: me@127.0.0.1\r\nconnection: close\r\n\r\n',
    400,
    'malformed_request',
  ],
  'no path': [`OPTIONS * HTTP/1.1\r\n${HOST}\r\n`, 400, 'malformed_request'],
  'an Expect header': [`${JSON_HEAD}expect: wonders\r\ncontent-length: 2\r\n\r\n{}`, 417, 'expectation_failed'],
  '[K6] the wrong host': [
    'GET /health HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n',
    403,
    'host_not_allowed',
  ],
  '[K6] two hosts, the right one last': [
    `GET /health HTTP/1.1\r\nhost: evil.example\r\n${HOST}\r\n`,
    403,
    'host_not_allowed',
  ],
  '[K6] two hosts, the right one first': [
    `GET /health HTTP/1.1\r\n${HOST}host: evil.example\r\n\r\n`,
    403,
    'host_not_allowed',
  ],
  '[K6] a page of another site': [
    `GET /health HTTP/1.1\r\n${HOST}origin: https://evil.example\r\n\r\n`,
    403,
    'origin_not_allowed',
  ],
  'a method not allowed for the path': [`TRACE /health HTTP/1.1\r\n${HOST}\r\n`, 405, 'method_not_allowed'],
  'a path above the root': [get('/../../etc/passwd'), 400, 'malformed_path'],
  'a URL of another host': [get('//evil.example/health'), 400, 'malformed_path'],
  'an incomplete percent escape': [get('/%'), 400, 'malformed_path'],
  'a model name with an incomplete character': [get('/v1/models/%E0%A4%A'), 400, 'malformed_path'],
  'a model name with a zero byte': [get('/v1/models/%00'), 400, 'malformed_path'],
  'a model name that is a path': [get('/v1/models/..%2f..%2fetc%2fpasswd'), 400, 'malformed_path'],
  'a response id that is a path': [get('/v1/responses/..%2f..%2fadmin%2fkeys'), 400, 'malformed_path'],
  'a key id that is a path': [
    `DELETE /admin/keys/..%2f..%2fetc%2fpasswd HTTP/1.1\r\n${HOST}\r\n`,
    400,
    'malformed_path',
  ],
  'a body larger than the limit, before it is sent': [
    `${JSON_HEAD}content-length: 99999999\r\n\r\n{`,
    413,
    'body_too_large',
  ],
};

describe.skipIf(!isServerBuilt)('[S8] sockets', () => {
  test('rejects each with a body and closes the connection, and other clients are unaffected', async () => {
    await withStreamBeside(server.url, async () => {
      await Promise.all(
        Object.entries(REFUSED).map(async ([name, [text, status, code]]) => {
          const [answer, ...more] = parseAnswers((await talk(server.url, [text])).text);
          expect([answer?.status, more.length], name).toEqual([status, 0]);
          const { headers, body } = answer!;
          expect(headers, name).toMatchObject({ 'content-type': 'application/json', connection: 'close' });
          expect(headers['x-request-id'], name).toMatch(/^[0-9a-f-]{36}$/);
          expect(JSON.parse(body), name).toMatchObject({ error: { code, type: 'invalid_request_error' } });
          if (hasOpenapi) expect(violationsOf('ErrorResponse', JSON.parse(body)), name).toEqual([]);
        }),
      );
    });
  });

  test('does not read a chunked body over the limit to its end', async () => {
    const sizeBytes = 200 * 2 ** 20;
    function* body(): Generator<string> {
      yield `POST /tokenize HTTP/1.1\r\n${HOST}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
      const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`;
      for (let sent = 0; sent < sizeBytes; sent += 65_536) yield chunk;
    }
    const { text, numWritten } = await talk(server.url, body());
    expect(parseAnswers(text)).toMatchObject([{ status: 413 }]);
    expect(text).toContain('the limit is 4194304');
    // The limit, plus the socket buffers on both sides.
    expect(numWritten).toBeLessThan(sizeBytes / 4);
  });

  test('[G1] waits for a slow body within its time limit', async () => {
    async function* slowly(): AsyncGenerator<string> {
      yield `${JSON_HEAD}content-length: 16\r\n\r\n`;
      for (const piece of '{"content":"hi"}') {
        yield piece;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }
    const [answer] = parseAnswers((await talk(server.url, slowly())).text);
    expect(answer).toMatchObject({ status: 200 });
  });

  test('answers pipelined requests in order, an older HTTP version and an unneeded body too', async () => {
    const keep = 'host: 127.0.0.1\r\n';
    const { text } = await talk(server.url, [
      `GET /health HTTP/1.1\r\n${keep}\r\nGET /nope HTTP/1.1\r\n${keep}\r\nDELETE /health HTTP/1.1\r\n${keep}\r\n`,
      get('/v1/models'),
    ]);
    expect(parseAnswers(text).map(({ status }) => status)).toEqual([200, 404, 405, 200]);
    const old = parseAnswers((await talk(server.url, ['GET /health HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n'])).text);
    expect(old).toMatchObject([{ status: 200, headers: { connection: 'close' }, body: '{"status":"ok"}' }]);
    const withBody = `GET /health HTTP/1.1\r\n${HOST}content-length: 2\r\n\r\n{}`;
    expect(parseAnswers((await talk(server.url, [withBody])).text)).toMatchObject([{ status: 200 }]);
  });

  test('garbage after a stream ends the connection without a second answer inside the first', async () => {
    const body = JSON.stringify({
      model: 'random',
      messages: [{ role: 'user', content: 'a' }],
      max_tokens: 4000, // Must not be finished before the garbage arrives.
      ignore_eos: true,
      stream: true,
    });
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    let begin = (): void => {};
    const hasBegun = new Promise<void>((resolve) => (begin = resolve));
    async function* parts(): AsyncGenerator<string> {
      yield head + body;
      await hasBegun;
      yield 'GARBAGE\r\n\r\n';
    }
    const { text } = await talk(server.url, parts(), (heard) => heard.includes('data: ') && begin());
    expect(parseAnswers(text).map(({ status }) => status)).toEqual([200]);
  });
});
