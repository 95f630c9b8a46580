import { expect, test } from 'vitest';
import { connectBurst, parseAnswers, talk } from '../../../test/support/raw-http.ts';
import { createTestServer } from '../../../test/support/test-server.ts';
import type { Server } from '../../server/app.ts';
import { listen } from './serve.ts';

/** A server that ends when it is told to; `wait` is what shutting down waits for. */
async function setUp({ fetch, wait = Promise.resolve() }: { fetch?: Server['fetch']; wait?: Promise<void> } = {}) {
  const server = createTestServer([]);
  const deadlines: number[] = [];
  const listening = await listen(
    {
      ...server,
      ...(fetch === undefined ? {} : { fetch }),
      async shutDown(deadlineMs) {
        deadlines.push(deadlineMs);
        server.services.admission.close();
        await wait;
      },
    },
    { host: '127.0.0.1', port: 0 },
  );
  return { listening, deadlines };
}

test('[E1] the deadline is for all of it: a part is kept for telling those who are cut off', async () => {
  for (const [deadlineMs, forRequests] of [
    [20_000, 19_000],
    [3000, 2000],
    [1000, 500],
    [0, 0],
  ] as const) {
    const { listening, deadlines } = await setUp();
    await listening.close(deadlineMs);
    // Less the time for those who were waiting.
    expect(deadlines[0]).toBeLessThanOrEqual(forRequests);
    expect(deadlines[0]).toBeGreaterThanOrEqual(forRequests - deadlineMs / 3);
  }
});

test('a connection outlasts what keeps a client busy between two requests', async () => {
  const { listening } = await setUp();
  const answer = await fetch(`${listening.url}/health`);
  expect([answer.headers.get('connection'), answer.headers.get('keep-alive')]).toEqual(['keep-alive', 'timeout=75']);
  await listening.close(1000);
});

test('[E1] while requests finish, others are told to go; then nobody answers', async () => {
  let finish = (): void => {};
  const { listening } = await setUp({ wait: new Promise((resolve) => (finish = resolve)) });
  const ask = (): Promise<Response> => fetch(`${listening.url}/health`);
  expect((await ask()).headers.get('connection')).toBe('keep-alive');
  const closed = listening.close(1000);
  const late = await ask();
  expect([late.status, late.headers.get('connection')]).toEqual([503, 'close']);
  finish();
  await closed;
  await expect(ask()).rejects.toThrow('fetch failed');
});

test('[E3] connections that the system has completed are taken and answered before the socket closes', async () => {
  const { listening } = await setUp({ fetch: async () => new Response('done') });
  const asking = Array.from({ length: 40 }, () => 'GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
  const { texts } = await connectBurst(listening.url, [...Array.from({ length: 300 }, () => ''), ...asking]);
  await listening.close(8000);
  const answers = (await texts).flatMap(parseAnswers);
  expect(answers.filter(({ body }) => body === 'done')).toHaveLength(asking.length);
});

test('[E3] clients that never stop coming do not hold it', async () => {
  const { listening } = await setUp();
  const over = new AbortController();
  const come = async (): Promise<void> => {
    while (!over.signal.aborted)
      await fetch(`${listening.url}/health`, { headers: { connection: 'close' } }).catch(() => {});
  };
  const coming = [come(), come()];
  const startMs = performance.now();
  await listening.close(1000);
  expect(performance.now() - startMs).toBeGreaterThan(200);
  over.abort();
  await Promise.all(coming);
});

test('[E1] a client that never reads to the end does not hold it', async () => {
  const endless = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(new Uint8Array(65_536)) });
  const { listening } = await setUp({ fetch: async () => new Response(endless) });
  let close = (): void => {};
  const closed = new Promise<void>((resolve) => (close = resolve)).then(() => listening.close(100));
  const { text } = await talk(listening.url, ['GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'], close);
  await closed;
  expect(parseAnswers(text)[0]!.status).toBe(200);
});
