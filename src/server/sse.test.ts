import { expect, test } from 'vitest';
import { createManualClock, settle } from '../../test/support/manual-clock.ts';
import { createSseResponse, type SseMessage } from './sse.ts';

function setUp(messages: AsyncIterable<SseMessage>) {
  const clock = createManualClock();
  let numAborts = 0;
  const response = createSseResponse({
    messages,
    abort: () => numAborts++,
    toError: (error) => ({ data: `error ${(error as Error).message}` }),
    keepAliveMs: 100,
    clock,
  });
  return { clock, response, numAborts: () => numAborts };
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
