import { expect, test } from 'vitest';
import { createManualClock, settle } from '../../../../test/support/manual-clock.ts';
import type { RemoteRoute } from '../../routing/route-config.ts';
import type { AnswerChunk } from '../answer-chunks.ts';
import { PLAIN_REQUEST } from '../generation-request.ts';
import { type RemoteCallContext, runRemote } from './remote-engine.ts';

const ROUTE: RemoteRoute = {
  kind: 'remote',
  id: 'far',
  url: 'https://far.example/v1/',
  model: 'far-model',
  pricePerMTokens: { input: 1, output: 1 },
  latency: 'medium',
  timeoutMs: 1000,
};
const REQUEST = { ...PLAIN_REQUEST, model: 'auto', prompts: ['hi'], options: {} };
const TYPE = { 'content-type': 'text/event-stream' };
const say = (content: string): string => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
const END = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`;

interface Sent {
  readonly url: string;
  readonly init: RequestInit;
}

/** A call whose engine answers as the functions say, in order. */
function call(
  answers: readonly ((sent: Sent) => Response | Promise<Response>)[],
  more: Partial<RemoteCallContext> = {},
  route = ROUTE,
) {
  // prettier-ignore
  const clock = createManualClock();
  const client = new AbortController();
  const sent: Sent[] = [];
  const ask = async (url: unknown, init: RequestInit): Promise<Response> => {
    sent.push({ url: String(url), init });
    return answers[sent.length - 1]!(sent.at(-1)!);
  };
  const context = { key: null, signal: client.signal, clock, fetch: ask as typeof fetch, ...more };
  const events = runRemote(route, { ...REQUEST, options: { seed: 9 } }, context);
  const texts = async (): Promise<string[]> => {
    const all: AnswerChunk[] = [];
    for await (const event of events) all.push(event);
    return all.map(({ text }) => text);
  };
  return { clock, client, sent, events, texts };
}

const answer = (): Response => new Response(say('Hi') + END, { headers: TYPE });
const broken = (code: unknown) => () => Promise.reject(Object.assign(new TypeError('fetch failed to 10.0.0.1'), { cause: { code } })); // prettier-ignore
const hanging = ({ init }: Sent): Promise<Response> =>
  new Promise((_, reject) => init.signal!.addEventListener('abort', () => reject(new Error('aborted'))));

/** A body that the test writes; it breaks off with its request. */
function createBody() {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start: (given) => void (controller = given),
    cancel: () => void (isCancelled = true),
  });
  const write = (text: string): void => controller.enqueue(new TextEncoder().encode(text));
  const respond = ({ init }: Sent): Response => {
    init.signal!.addEventListener('abort', () => isCancelled || controller.error(new Error('aborted')));
    return new Response(body, { headers: TYPE });
  };
  return { respond, write, isCancelled: () => isCancelled };
}

test('a request is a POST with the key and the trace of its client, without redirects', async () => {
  const trace = { traceId: '1', headers: { traceparent: '00-1' } };
  const { sent, texts, clock, events } = call([answer], { key: 'k1', trace });
  expect((await events.next()).value).toMatchObject({ choice: 0, text: 'Hi' });
  expect((await events.next()).value).toMatchObject({ finishReason: 'stop', seed: 9 });
  expect(await texts()).toEqual([]);
  const { headers, body, signal, ...init } = sent[0]!.init;
  expect(sent[0]!.url).toBe('https://far.example/v1/chat/completions');
  expect(init).toEqual({ method: 'POST', redirect: 'manual' });
  expect(headers).toEqual({
    'content-type': 'application/json',
    accept: 'text/event-stream',
    traceparent: '00-1',
    authorization: 'Bearer k1',
  });
  expect(JSON.parse(body as string)).toMatchObject({ model: 'far-model', seed: 9, stream: true });
  expect([signal!.aborted, clock.numTimers]).toEqual([true, 0]);
  const plain = call([answer]);
  await plain.texts();
  expect(Object.keys(plain.sent[0]!.init.headers!)).toEqual(['content-type', 'accept']);
});

test.each([
  [400, 'invalid_option', false, 'does not take this request'],
  [401, 'remote_failed', false, 'does not take the configured key'],
  [403, 'remote_failed', false, 'does not allow this with the configured key'],
  [404, 'remote_failed', false, 'does not know the configured model or path'],
  [413, 'invalid_option', false, 'takes no request of this size'],
  [422, 'invalid_option', false, 'does not take this request'],
  [429, 'overloaded', true, 'is overloaded, or its quota is used up'],
  [503, 'overloaded', true, 'is overloaded'],
  [299, 'remote_failed', false, 'failed'],
  [300, 'remote_failed', false, 'answered with a redirect, which is not followed'],
  [399, 'remote_failed', false, 'answered with a redirect, which is not followed'],
  [499, 'remote_failed', false, 'failed'],
  [500, 'remote_failed', true, 'failed'],
])('the status %d is the error %s, retryable: %s', async (status, code, isRetryable, says) => {
  const { respond, write, isCancelled } = createBody();
  write(END);
  const { texts } = call([(sent) => new Response(respond(sent).body, { status, headers: TYPE })]);
  await expect(texts()).rejects.toMatchObject({
    code,
    isRetryable,
    message: `"far" ${says} (status ${status})`,
    data: { candidate: 'far', status },
  });
  expect(isCancelled()).toBe(true);
});

test.each([
  ['JSON', () => Response.json({ secret: 1 })],
  ['no type', () => new Response(new Blob([END]))],
  ['a type that only begins like it', () => new Response(END, { headers: { 'content-type': 'text/event-streams' } })],
  ['no body', () => new Response(null, { headers: TYPE })],
])('a good status with %s is no answer', async (_name, respond) => {
  await expect(call([respond]).texts()).rejects.toMatchObject({
    code: 'remote_failed',
    message: '"far" answered with something that is no stream of events',
    data: { candidate: 'far' },
  });
});

test('the type of the answer may have capitals and parameters', async () => {
  const headers = { 'content-type': 'Text/Event-Stream; charset=utf-8' };
  expect(await call([() => new Response(END, { headers })]).texts()).toEqual(['']);
});

test.each(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])(
  'a request on a connection that is closed (%s) is sent once more',
  async (code) => {
    // prettier-ignore
    const again = call([broken(code), answer]);
    expect(await again.texts()).toEqual(['Hi', '']);
    expect(again.sent).toHaveLength(2);
    const twice = call([broken(code), broken(code)]);
    await expect(twice.texts()).rejects.toMatchObject({ message: `"far" cannot be reached: ${code}` });
    expect(twice.sent).toHaveLength(2);
  },
);

test.each([
  ['ECONNREFUSED', 'ECONNREFUSED'],
  ['http://10.0.0.1', 'the connection broke'],
  [7, 'the connection broke'],
  [undefined, 'the connection broke'],
])('a network error with the code %s is reported without its words', async (code, reason) => {
  const { texts, sent } = call([broken(code)]);
  await expect(texts()).rejects.toMatchObject({
    code: 'remote_failed',
    message: `"far" cannot be reached: ${reason}`,
    isRetryable: true,
    data: { candidate: 'far' },
  });
  expect(sent).toHaveLength(1);
});

test('nothing is sent again for a client that left', async () => {
  const { texts, sent, client } = call([() => (client.abort(), broken('ECONNRESET')())]);
  await expect(texts()).rejects.toMatchObject({ code: 'aborted', message: 'aborted by the caller' });
  expect(sent).toHaveLength(1);
});

test('a broken answer is an error that names the candidate', async () => {
  await expect(call([() => new Response('data: {"a\n\n', { headers: TYPE })]).texts()).rejects.toMatchObject({
    code: 'remote_failed',
    message: '"far": it sent an event of 3 characters that is not JSON',
    data: { candidate: 'far' },
  });
});

test('an engine that is silent for its time, before the answer or within it, has failed', async () => {
  const late = { code: 'deadline_exceeded', message: '"far" was silent for 1000 ms', isRetryable: true, data: { candidate: 'far', timeoutMs: 1000 } }; // prettier-ignore
  const silent = call([hanging]);
  const texts = silent.texts();
  texts.catch(() => {});
  await settle();
  silent.clock.advance(999);
  await settle();
  expect(silent.sent[0]!.init.signal!.aborted).toBe(false);
  silent.clock.advance(1);
  await expect(texts).rejects.toMatchObject(late);

  const { respond, write } = createBody();
  const { events, clock, sent } = call([respond]);
  const wait = async (ms: number, text: string): Promise<void> => {
    clock.advance(ms);
    write(text);
    await settle();
  };
  const first = events.next();
  await settle();
  // Any byte is a sign of life.
  await wait(999, ': still here\n\n');
  await wait(999, say('Hi'));
  expect((await first).value).toMatchObject({ text: 'Hi' });
  // A reader that takes its time is no silence of the engine.
  expect(clock.numTimers).toBe(0);
  clock.advance(10_000);
  const second = events.next();
  await settle();
  clock.advance(999);
  expect(sent[0]!.init.signal!.aborted).toBe(false);
  clock.advance(1);
  expect(sent[0]!.init.signal!.aborted).toBe(true);
  await expect(second).rejects.toMatchObject(late);
});

test('a reader that leaves closes the connection and the timer', async () => {
  const { respond, write, isCancelled } = createBody();
  const { events, clock, sent } = call([respond]);
  write(say('Hi'));
  await events.next();
  await events.return();
  expect([isCancelled(), sent[0]!.init.signal!.aborted, clock.numTimers]).toEqual([true, true, 0]);
});
