import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { createMemoryKeys, createTestServer, entryOf, listenOnLoopback } from '../../../test/support/test-server.ts';
import { createToyRuntime, type ToyRuntimeOptions } from '../../../test/support/toy-runtime.ts';
import { createKeyStore } from '../../server/keys/key-store.ts';
import type { LogFields } from '../../server/logger.ts';
import type { Listening } from './serve.ts';

let listening: Listening | null = null;
afterEach(async () => {
  await listening?.close(1000);
  listening = null;
});

async function setUp(options: ToyRuntimeOptions = {}) {
  const { model } = await createToyRuntime(options);
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  const { token, key } = await keys.create({ name: 'a', tenant: 'a', scopes: ['admin', 'inference'] });
  const lines: { level: string; event: string; fields: LogFields }[] = [];
  const server = createTestServer([entryOf('toy', async () => model)], {
    keys,
    isOpen: false,
    limits: { requestsPerMinute: 1e6, burst: 1e6 },
    logger: { log: (level, event, fields) => void lines.push({ level, event, fields: fields ?? {} }) },
  });
  listening = await listenOnLoopback(server);
  return { server, model, keys, token, keyId: key.id, port: listening.port, url: listening.url, lines };
}

const messages = [{ role: 'user', content: 'hi' }];
const post = (path: string, token: string, body: string, length = body.length): string =>
  `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n` +
  `content-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`;

/** Sends bytes and destroys the socket after `afterMs`, before anything is read. */
function leave(port: number, text: string, afterMs: number): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(text, () => setTimeout(() => socket.destroy(), afterMs));
    });
    socket.on('close', () => resolve());
    socket.on('error', () => {});
  });
}

/** Waits until it holds: requests end shortly after their client. */
async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 500; i++) {
    if (await isTrue()) return;
    await sleep(20);
  }
  expect(await isTrue()).toBe(true);
}

test('[G2] 200 clients that leave before the first byte of a stream free their places', async () => {
  const { server, model, token, port, url } = await setUp();
  const streams = [
    post('/v1/chat/completions', token, JSON.stringify({ model: 'toy', messages, stream: true, max_tokens: 400 })),
    post('/api/chat', token, JSON.stringify({ model: 'toy', messages })),
    `GET /admin/live/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n\r\n`,
  ];
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 40 }, (_, i) => leave(port, streams[i % streams.length]!, i % 5)));
  }
  await until(() => server.services.admission.numRequests === 0 && server.services.watchers.numWatchers === 0);
  await until(async () => {
    const { numRunning, numWaiting } = await model.stats();
    return numRunning + numWaiting === 0;
  });
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'toy', messages, max_tokens: 2 }),
  });
  expect(answer.status).toBe(200);
});

test('[S5] a client that leaves while it sends its body is one quiet line in the log', async () => {
  const { token, port, lines } = await setUp();
  await leave(port, post('/v1/chat/completions', token, '{"model":', 500), 50);
  const chunked = post('/v1/chat/completions', token, '9\r\n{"model":\r\n').replace(/content-length: \d+/, 'transfer-encoding: chunked'); // prettier-ignore
  await leave(port, chunked, 50);
  const requests = (): typeof lines => lines.filter(({ fields }) => fields['route'] !== null);
  await until(() => requests().length === 2);
  for (const { level, fields } of requests()) {
    expect([level, fields['status'], fields['code'], fields['reason']]).toEqual(['info', 499, 'aborted', undefined]);
  }
});

test('[K8] a stream ends with an error when its key is revoked', async () => {
  const { keys, token, keyId, url, server } = await setUp({ beforeForward: () => sleep(5) });
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'toy', messages, stream: true, max_tokens: 400, ignore_eos: true }),
  });
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of response.body!) {
    if (text === '') keys.revoke(keyId);
    text += decoder.decode(part, { stream: true });
  }
  expect(text.trim().split('\n\n').at(-1)).toMatch(/"code":"invalid_api_key"/);
  expect(text).not.toContain('[DONE]');
  await until(() => server.services.admission.numRequests === 0);
});
