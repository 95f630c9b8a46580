import { describe, expect, test } from 'vitest';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { openTracer } from '../../node/open-tracer.ts';
import type { AnswerChunk } from './answer-chunks.ts';
import type { RememberedRequest } from './remember-request.ts';
import { type SpanAttributes, traceAnswer, traceMemory, type Tracer } from './tracing.ts';

interface Recorded {
  name: string;
  attributes: SpanAttributes;
  status: number | null;
  isEnded: boolean;
  parent: unknown;
}

const ROOT = { name: 'root' };

/** Fake of OpenTelemetry's API. */
function createFakeApi(active: object = ROOT) {
  const spans: Recorded[] = [];
  const startSpan = (name: string, { attributes }: { attributes: SpanAttributes }, parent: unknown) => {
    const span: Recorded = { name, attributes, status: null, isEnded: false, parent };
    spans.push(span);
    return {
      setAttributes: (more: SpanAttributes) => (span.attributes = { ...span.attributes, ...more }),
      setAttribute: (key: string, value: string) => (span.attributes = { ...span.attributes, [key]: value }),
      setStatus: ({ code }: { code: number }) => (span.status = code),
      end: () => (span.isEnded = true),
    };
  };
  const api = {
    trace: { getTracer: () => ({ startSpan }), getSpan: (context: object) => (context === ROOT ? undefined : context) },
    context: { active: () => active },
    propagation: { extract: (context: object, carrier: object) => ({ context, carrier }) },
  };
  return { spans, api };
}

test('a request is one span with the names for generative AI, whole or broken off, and no words', async () => {
  const { spans, api } = createFakeApi();
  const { model } = await createToyRuntime();
  const tracer = await openTracer(async () => api);
  const { fetch } = createTestServer([entryOf('toy', async () => model)], { tracer });
  const ask = (more: object): Promise<Response> =>
    fetch(
      new Request('http://localhost/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'toy',
          messages: [{ role: 'user', content: 'secret' }],
          ignore_eos: true,
          ...more,
        }),
      }),
    );
  const answer = await ask({ max_tokens: 3, seed: 1 });
  expect(spans).toEqual([
    {
      name: 'chat toy',
      status: null,
      isEnded: true,
      parent: ROOT,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'ruvllm',
        'gen_ai.request.model': 'toy',
        'gen_ai.request.choice.count': 1,
        'gen_ai.request.max_tokens': 3,
        'gen_ai.request.seed': 1,
        'gen_ai.response.id': answer.headers.get('x-request-id'),
        'gen_ai.response.model': 'toy',
        'gen_ai.usage.input_tokens': 13,
        'gen_ai.usage.output_tokens': 3,
        'gen_ai.response.finish_reasons': ['length'],
      },
    },
  ]);
  const reader = (await ask({ stream: true })).body!.getReader();
  await reader.read();
  await reader.cancel();
  while (!spans[1]!.isEnded) await new Promise((resolve) => setImmediate(resolve));
  expect(spans[1]).toMatchObject({ status: 2, attributes: { 'error.type': 'aborted' } });
  await ask({ model: 'nope' });
  expect(spans[2]).toMatchObject({ isEnded: true, status: 2, attributes: { 'error.type': 'model_not_found' } });
  expect(JSON.stringify(spans)).not.toContain('secret');
});

test('without the package nothing is traced and nothing fails', async () => {
  const tracer = await openTracer(() => Promise.reject(new Error('not installed')));
  tracer.start('x', {}, null).end(null);
  expect((await openTracer()).start('x', {}, null)).toBeDefined();
});

test("[GW26] an API without an SDK, whose ids are zeros, leaves the client's trace as it is", async () => {
  const { api } = createFakeApi();
  const zeros = { traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 };
  const withSpan = (own: typeof zeros) => ({
    ...api,
    trace: {
      ...api.trace,
      getTracer: () => ({ startSpan: () => ({ setAttributes() {}, end() {}, spanContext: () => own }) }),
    },
  });
  const trace = {
    traceId: 'a'.repeat(32),
    headers: { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'x=1' },
  };
  const contextOf = async (own: typeof zeros, given: typeof trace | null) =>
    (await openTracer(async () => withSpan(own))).start('x', {}, given).context;
  expect([await contextOf(zeros, trace), await contextOf(zeros, null)]).toEqual([trace, null]);
  expect(await contextOf({ ...zeros, traceId: trace.traceId }, trace)).toEqual(trace);
  const own = { traceId: trace.traceId, spanId: 'c'.repeat(16), traceFlags: 1 };
  const headers = { traceparent: `00-${own.traceId}-${own.spanId}-01`, tracestate: 'x=1' };
  expect(await contextOf(own, trace)).toEqual({ traceId: own.traceId, headers });
});

describe("[TR1] the client's trace", () => {
  const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

  async function parentsOf(headers: Record<string, string>, active?: object): Promise<unknown[]> {
    const { spans, api } = createFakeApi(active);
    const { model } = await createToyRuntime();
    const tracer = await openTracer(async () => api);
    const { fetch } = createTestServer([entryOf('toy', async () => model)], { tracer });
    for (const [path, body] of [
      ['/v1/chat/completions', { messages: [{ role: 'user', content: 'a' }], max_tokens: 1 }],
      ['/v1/messages', { messages: [{ role: 'user', content: 'a' }], max_tokens: 1 }],
      ['/v1/responses', { input: 'a', max_output_tokens: 1, stream: true }],
    ] as const) {
      const response = await fetch(
        new Request(`http://localhost${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify({ model: 'toy', ...body }),
        }),
      );
      expect(response.status).toBe(200);
      await response.text();
    }
    return spans.map(({ parent }) => parent);
  }

  test('goes on in ours', async () => {
    const headers = { traceparent: TRACE, tracestate: 'vendor=1' };
    const parent = { context: ROOT, carrier: headers };
    expect(await parentsOf(headers)).toEqual([parent, parent, parent]);
    // The state is optional, and one that is too long is dropped.
    const alone = { context: ROOT, carrier: { traceparent: TRACE } };
    expect(await parentsOf({ traceparent: TRACE, tracestate: 'x'.repeat(513) })).toEqual([alone, alone, alone]);
    // A later version may say more than we know.
    const later = `01${TRACE.slice(2)}-more`;
    expect((await parentsOf({ traceparent: later }))[0]).toEqual({ context: ROOT, carrier: { traceparent: later } });
  });

  test('goes on in the span of the socket where there is one', async () => {
    const socket = { name: 'POST' };
    expect(await parentsOf({ traceparent: TRACE }, socket)).toEqual([socket, socket, socket]);
  });

  test.each([
    ['no trace', ''],
    ['an unknown version', `ff${TRACE.slice(2)}`],
    ['more than the version has', `${TRACE}-more`],
    ['no trace id', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`],
    ['no parent', `00-4bf92f3577b34da6a3ce929d0e0e4736-${'0'.repeat(16)}-01`],
    ['capital letters', TRACE.toUpperCase()],
    ['something else', 'x'.repeat(10_000)],
  ])('%s is a trace of our own', async (_name, traceparent) => {
    expect(await parentsOf({ traceparent })).toEqual([ROOT, ROOT, ROOT]);
  });
});

/** A tracer that writes down what was started and how it ended. */
function createLog() {
  const log: string[] = [];
  const start: Tracer['start'] = (name, _attributes, trace, kind) => {
    log.push(`start ${name} ${kind}`);
    return {
      context: trace,
      set: (attributes) => void log.push(JSON.stringify(attributes)),
      end: (error) => void log.push(`end ${name} ${error}`),
    };
  };
  return { log, tracer: { start } };
}

test('recall is a part of the request, and so is the writing that its answer waits for', async () => {
  const { log, tracer } = createLog();
  const seen: unknown[] = [];
  const recalled = (writing: Promise<void> | undefined) => ({
    observer: { onEvent: (event: unknown) => seen.push(event), onEnd: (error: unknown) => (seen.push(error), writing) },
  }) as unknown as RememberedRequest; // prettier-ignore
  const waits = await traceMemory(tracer, null, async () => recalled(Promise.resolve()));
  waits.observer!.onEvent('event' as never);
  await waits.observer!.onEnd(null);
  const none = await traceMemory(tracer, null, async () => recalled(undefined));
  expect(none.observer!.onEnd('error')).toBeUndefined();
  expect(seen).toEqual(['event', null, 'error']);
  const silent = { observer: null } as unknown as RememberedRequest;
  expect(await traceMemory(tracer, null, async () => silent)).toBe(silent);
  await expect(traceMemory(tracer, null, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(log).toEqual([
    'start memory recall internal',
    'end memory recall null',
    'start memory write internal',
    'end memory write null',
    ...Array.from({ length: 2 }, () => ['start memory recall internal', 'end memory recall null']).flat(),
    'start memory recall internal',
    'end memory recall internal',
  ]);
});

test('the span of an answer has the longest prompt and the tokens of all choices', () => {
  const { log, tracer } = createLog();
  const span = tracer.start('x', {}, null);
  const { onEvent, onEnd } = traceAnswer(span, 'large');
  const end = (promptTokens: number, completionTokens: number, finishReason: string | null) =>
    onEvent({ finishReason, usage: { promptTokens, completionTokens } } as AnswerChunk);
  end(99, 99, null);
  end(5, 2, 'stop');
  end(0, 3, 'length');
  void onEnd(null);
  expect(JSON.parse(log[1]!)).toEqual({
    'gen_ai.response.model': 'large',
    'gen_ai.usage.input_tokens': 5,
    'gen_ai.usage.output_tokens': 5,
    'gen_ai.response.finish_reasons': ['stop', 'length'],
  });
  expect(log[2]).toBe('end x null');
});
