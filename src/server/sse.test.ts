import { expect, test } from 'vitest';
import { createManualClock, settle } from '../../test/support/manual-clock.ts';
import { createTestServer } from '../../test/support/test-server.ts';
import { createSseResponse, type SseMessage } from './sse.ts';

function setUp(messages: AsyncIterable<SseMessage>, checkCaller = (): void => {}) {
  const clock = createManualClock();
  let numAborts = 0;
  const leave = new AbortController();
  const { services } = createTestServer([]);
  const response = createSseResponse({
    caller: { requestId: 'r', tenant: 't', keyId: 'k', scopes: [], signal: leave.signal, trace: null },
    services: {
      ...services,
      clock,
      guard: { ...services.guard, checkCaller },
      limits: { ...services.limits, keepAliveMs: 100 },
    },
    messages,
    abort: () => numAborts++,
    toError: (error) => ({ data: `error ${(error as Error).message}` }),
  });
  return { clock, response, leave, numAborts: () => numAborts };
}

async function* from(...messages: SseMessage[]): AsyncGenerator<SseMessage, void, undefined> {
  yield* messages;
}

test('writes events with and without names and line breaks', async () => {
  const { response, numAborts } = setUp(from({ data: '{"a":1}' }, { event: 'ping', data: 'x' }, { data: 'a\nb' }));
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(await response.text()).toBe('data: {"a":1}\n\nevent: ping\ndata: x\n\ndata: a\ndata: b\n\n');
  expect(numAborts()).toBe(0);
});

test('a failure is the last event', async () => {
  async function* failing(): AsyncGenerator<SseMessage, void, undefined> {
    yield { data: '1' };
    throw new Error('broken');
  }
  const { response, numAborts } = setUp(failing());
  expect(await response.text()).toBe('data: 1\n\ndata: error broken\n\n');
  expect(numAborts()).toBe(1);
});

test('[G3] reads only a few events ahead of a slow client', async () => {
  let numRead = 0;
  async function* endless(): AsyncGenerator<SseMessage, void, undefined> {
    for (;;) yield { data: String(numRead++) };
  }
  const { response } = setUp(endless());
  await settle();
  await settle();
  const ahead = numRead;
  expect(ahead).toBeLessThan(8);
  const reader = response.body!.getReader();
  for (let i = 0; i < 20; i++) await reader.read();
  await settle();
  expect(numRead).toBeGreaterThanOrEqual(20);
  expect(numRead).toBeLessThanOrEqual(20 + ahead);
  await reader.cancel();
});

test('[G2] a client that leaves aborts the work, even between events', async () => {
  let isReturned = false;
  const silent: AsyncIterable<SseMessage> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => {}),
      async return() {
        isReturned = true;
        return { value: undefined, done: true };
      },
    }),
  };
  const { clock, response, numAborts } = setUp(silent);
  const reader = response.body!.getReader();
  const read = reader.read();
  await reader.cancel();
  expect((await read).done).toBe(true);
  expect(numAborts()).toBe(1);
  expect(isReturned).toBe(true);
  clock.advance(1000); // no comment after the stream is closed
});

test('[G2] a client that left before it read keeps no timer', async () => {
  const silent: AsyncIterable<SseMessage> = {
    [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
  };
  const { clock, leave } = setUp(silent);
  await settle();
  expect(clock.numTimers).toBe(1);
  leave.abort();
  clock.advance(100);
  expect(clock.numTimers).toBe(0);
});

test('[K8] a revoked key ends the stream with an error before the next event', async () => {
  let isRevoked = false;
  let isReturned = false;
  async function* endless(): AsyncGenerator<SseMessage, void, undefined> {
    try {
      for (let i = 0; ; i++) yield { data: String(i) };
    } finally {
      isReturned = true;
    }
  }
  const { clock, response, numAborts } = setUp(endless(), () => {
    if (isRevoked) throw new Error('not valid any more');
  });
  const reader = response.body!.getReader();
  await reader.read();
  await settle();
  isRevoked = true;
  clock.advance(100);
  const texts: string[] = [];
  for (let next = await reader.read(); !next.done; next = await reader.read())
    texts.push(new TextDecoder().decode(next.value));
  expect(texts.length).toBeLessThan(8); // those that were queued before
  expect(texts.at(-1)).toBe('data: error not valid any more\n\n');
  expect([numAborts(), isReturned]).toEqual([1, true]);
});

test('sends keep-alive comments while the client reads', async () => {
  const silent: AsyncIterable<SseMessage> = {
    [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
  };
  const { clock, response } = setUp(silent);
  const reader = response.body!.getReader();
  await settle();
  for (let i = 0; i < 100; i++) clock.advance(100);
  const texts: string[] = [];
  for (let i = 0; i < 4; i++) texts.push(new TextDecoder().decode((await reader.read()).value));
  expect(texts).toEqual([': keep-alive\n\n', ': keep-alive\n\n', ': keep-alive\n\n', ': keep-alive\n\n']);
  let hasMore = false;
  void reader.read().then(() => (hasMore = true));
  await settle();
  expect(hasMore).toBe(false); // the other 96 were not queued
  await reader.cancel();
});
