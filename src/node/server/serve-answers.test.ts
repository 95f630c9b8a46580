import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHostedEcho } from '../../../test/support/scripted-model.ts';
import { createTestServer, entryOf, listenOnLoopback } from '../../../test/support/test-server.ts';
import { json } from '../../server/route.ts';
import { textOf } from '../../server/text-response.ts';
import type { Listening } from './serve.ts';

let listening: Listening;
beforeAll(async () => {
  listening = await listenOnLoopback(createTestServer([entryOf('echo', async () => createHostedEcho(100))]));
});
afterAll(() => listening.close(1000));

const ask = (body: object): Promise<Response> =>
  fetch(`${listening.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'grüß dich' }], ...body }),
  });

test('a text is written at once: its length in bytes, the headers and the status of the response', async () => {
  const answer = await ask({});
  const text = await answer.text();
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json');
  expect(answer.headers.get('transfer-encoding')).toBeNull();
  expect(answer.headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
  expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  expect(JSON.parse(text)).toMatchObject({ choices: [{ message: { content: 're: grüß dich' } }] });
  const refused = await ask({ model: 'nobody' });
  expect([refused.status, refused.headers.get('x-request-id')?.length]).toEqual([404, 36]);
  expect(await refused.json()).toMatchObject({ error: { code: 'model_not_found' } });
});

test('a stream stays one', async () => {
  const answer = await ask({ stream: true });
  expect(answer.headers.get('content-length')).toBeNull();
  expect((await answer.text()).trim().split('\n\n').at(-1)).toBe('data: [DONE]');
});

test('without a socket the same response is read like any other', async () => {
  const response = json({ a: 1 }, 201);
  expect([textOf(response), response.status, await response.text()]).toEqual(['{"a":1}', 201, '{"a":1}']);
  expect(textOf(new Response('x'))).toBeNull();
});
