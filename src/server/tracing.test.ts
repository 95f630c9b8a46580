import { expect, test } from 'vitest';
import { createTestServer, entryOf } from '../../test/support/test-server.ts';
import { createToyRuntime } from '../../test/support/toy-runtime.ts';
import { openTracer } from '../platform/node/open-tracer.ts';
import type { SpanAttributes } from './tracing.ts';

interface Recorded {
  name: string;
  attributes: SpanAttributes;
  status: number | null;
  isEnded: boolean;
}

/** What OpenTelemetry's API looks like from outside. */
function createFakeApi() {
  const spans: Recorded[] = [];
  const startSpan = (name: string, { attributes }: { attributes: SpanAttributes }) => {
    const span: Recorded = { name, attributes, status: null, isEnded: false };
    spans.push(span);
    return {
      setAttributes: (more: SpanAttributes) => (span.attributes = { ...span.attributes, ...more }),
      setAttribute: (key: string, value: string) => (span.attributes = { ...span.attributes, [key]: value }),
      setStatus: ({ code }: { code: number }) => (span.status = code),
      end: () => (span.isEnded = true),
    };
  };
  return { spans, api: { trace: { getTracer: () => ({ startSpan }) } } };
}

test('a job is one span with the names for generative AI, whole or broken off, and no words', async () => {
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
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'ruvllm',
        'gen_ai.request.model': 'toy',
        'gen_ai.request.choice.count': 1,
        'gen_ai.request.max_tokens': 3,
        'gen_ai.request.temperature': 1,
        'gen_ai.request.top_p': 1,
        'gen_ai.request.seed': 1,
        'gen_ai.response.id': answer.headers.get('x-request-id'),
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
  tracer.start('x', {}).end(null);
  expect((await openTracer()).start('x', {})).toBeDefined();
});
