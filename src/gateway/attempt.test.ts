import { describe, expect, test } from 'vitest';
import { createManualClock, settle } from '../../test/support/manual-clock.ts';
import type { SpanAttributes, Tracer } from '../runtime/requests/tracing.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { Route } from '../server/route.ts';
import { attempt, isStream } from './attempt.ts';
import { createNode, setHealth } from './node-table.ts';
import { openSpan } from './request-span.ts';
import type { GatewayRequest, Upstream, UpstreamResponse } from './types.ts';

describe('an attempt', () => {
  const open = (send: Upstream['send']) => {
    const node = createNode('7', 'http://a');
    const client = new AbortController();
    const request = { method: 'POST', target: '/', headers: {}, body: new Uint8Array(), signal: client.signal };
    const clock = createManualClock();
    const result = attempt({ send, close() {} }, node, request, { clock, headMs: 100, answerMs: 1000 });
    return { node, client, clock, result };
  };
  const hang: Upstream['send'] = (_, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));

  test('[GW1] ends with the node, with the client, or with its own failure', async () => {
    const lost = open(hang);
    setHealth(lost.node, 'down', 'gone');
    await expect(lost.result).rejects.toMatchObject({ code: 'remote_failed', message: 'node 7 was lost', data: { isSent: true } }); // prettier-ignore
    const left = open(hang);
    left.client.abort();
    await expect(left.result).rejects.toMatchObject({ code: 'aborted', message: 'the client left' });
    const failed = open(() => Promise.reject(new RuvLLMError('remote_failed', 'refused', { data: { isSent: false } })));
    await expect(failed.result).rejects.toMatchObject({ message: 'refused', data: { isSent: false } });
  });

  test('[GW25] ends after its limits: for the headers, and for the first bytes of a stream or all of another answer', async () => {
    const late = (ms: number) => ({
      code: 'remote_failed',
      message: `node 7 gave no answer within ${ms} ms`,
      data: { isSent: true, isLate: true },
    });
    const silent = open(hang);
    silent.clock.advance(99);
    silent.clock.advance(1);
    await expect(silent.result).rejects.toMatchObject(late(100));
    for (const type of ['text/event-stream', 'application/json']) {
      const body = (signal: AbortSignal) =>
        (async function* () {
          if (type === 'application/json') yield Uint8Array.of(1);
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
        })();
      const { result, clock } = open(async (_, { signal }) => ({
        status: 200,
        headers: { 'content-type': type },
        body: body(signal),
      }));
      await settle();
      clock.advance(999);
      clock.advance(1);
      await expect(result).rejects.toMatchObject(late(1000));
    }
    const answered = open(async () => ({ status: 200, headers: {}, body: (async function* () {})() }));
    await answered.result;
    expect(answered.clock.numTimers).toBe(0);
  });

  test('[GW7] ends the request to the node only if there is more to read', async () => {
    const aborted: boolean[] = [];
    const answer = async (type: string): Promise<void> => {
      let signal: AbortSignal | null = null;
      const body = async function* () {
        yield Uint8Array.of(1);
        yield Uint8Array.of(2);
      };
      const { result } = open(async (_, request) => {
        signal = request.signal;
        return { status: 200, headers: { 'content-type': type }, body: body() } satisfies UpstreamResponse;
      });
      (await result).end();
      aborted.push(signal!.aborted);
    };
    await answer('text/event-stream');
    await answer('application/json');
    expect(aborted).toEqual([true, false]);
  });

  test.each([
    ['text/event-stream; charset=utf-8', true],
    ['application/x-ndjson', true],
    ['application/json', false],
    ['x-text/event-stream', false],
  ])('with the type %s is a stream: %s', (type, isOne) => {
    expect([isStream({ headers: { 'content-type': type } }), isStream({ headers: {} })]).toEqual([isOne, false]);
  });
});

describe('the span of a request', () => {
  function open(hasTrace = true) {
    const log: unknown[] = [];
    const tracer: Tracer = {
      start: (name, attributes, trace) => {
        log.push([name, attributes, trace?.traceId ?? null]);
        return {
          context: hasTrace ? { traceId: 't', headers: { traceparent: 'x' } } : null,
          set: (more: SpanAttributes) => void log.push(more),
          end: (type) => void log.push(type),
        };
      },
    };
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const span = openSpan(tracer, { method: 'POST', path: '/x' } as Route, { headers: new Headers({ traceparent }) } as GatewayRequest, 'id'); // prettier-ignore
    return { span, log };
  }

  test('continues the trace of the client', () => {
    const { span, log } = open();
    const attributes = { 'http.request.method': 'POST', 'http.route': '/x', 'ruvllm.request_id': 'id' };
    expect(log).toEqual([['POST /x', attributes, 'a'.repeat(32)]]);
    expect([span.headers, open(false).span.headers]).toEqual([{ traceparent: 'x' }, {}]);
  });

  test.each([
    [200, null, null],
    [499, null, null],
    [500, null, '500'],
    [503, null, '503'],
    [500, new RuvLLMError('overloaded', 'full'), 'overloaded'],
    [200, new RuvLLMError('aborted', 'left'), 'aborted'],
  ])('of an answer with %i and the error %s ends with %s, once', (status, error, type) => {
    const { span, log } = open();
    span.answer('7', status);
    span.end(error);
    span.end(new RuvLLMError('io', 'later'));
    expect(log.slice(1)).toEqual([{ 'ruvllm.node': '7', 'http.response.status_code': status }, type]);
  });
});
