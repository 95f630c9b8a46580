import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { onAbort } from '../../core/abort.ts';
import { createManualClock, settle } from '../../../test/support/manual-clock.ts';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createOtlpExporter, MAX_QUEUE } from './otlp-exporter.ts';
import { readOtlpOptions } from './otlp-options.ts';
import { checkMetrics, checkTraces } from './otlp-schema.contract.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface Received {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: any;
}

/** A collector that checks each body against the published mapping; `answers` are its statuses, 200 after the last. */
async function openCollector(answers: number[] = []) {
  const received: Received[] = [];
  const violations: string[] = [];
  const http = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(parts).toString()) as any;
      received.push({ path: request.url!, headers: request.headers, body });
      violations.push(...(request.url === '/v1/traces' ? checkTraces(body) : checkMetrics(body)));
      response.writeHead(answers.shift() ?? 200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  });
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const spans = (): any[] =>
    received
      .filter(({ path }) => path === '/v1/traces')
      .flatMap(({ body }) =>
        body.resourceSpans.flatMap((one: any) => one.scopeSpans.flatMap((scope: any) => scope.spans)),
      );
  return { url, received, violations, spans };
}

const plain = (attributes: { key: string; value: any }[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? (value.intValue === undefined ? (value.doubleValue ?? value.arrayValue.values.map((one: any) => one.stringValue)) : Number(value.intValue))])); // prettier-ignore

async function openServer(url: string, environment: Record<string, string> = {}) {
  const { model } = await createToyRuntime();
  const otlp = readOtlpOptions(url, { OTEL_BSP_SCHEDULE_DELAY: '10', ...environment });
  const server = createTestServer([entryOf('toy', async () => model)], { otlp, nodeName: 'here' });
  const ask = (headers: Record<string, string> = {}, more: object = {}): Promise<Response> =>
    server.fetch(
      new Request('http://localhost/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ model: 'toy', messages: [{ role: 'user', content: 'secret words' }], max_tokens: 3, ignore_eos: true, ...more }), // prettier-ignore
      }),
    );
  return { server, ask };
}

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

describe('[TR2] spans by OTLP', () => {
  test('continue the trace of the client, with the names for generative AI and without words', async () => {
    const { url, spans, violations, received } = await openCollector();
    const { server, ask } = await openServer(url, { OTEL_SERVICE_NAME: 'mine', OTEL_EXPORTER_OTLP_HEADERS: 'x-token=a%20b', OTEL_METRICS_EXPORTER: 'none' }); // prettier-ignore
    const answer = await ask(
      { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: 'a=b' },
      { seed: 1, temperature: 0.5 },
    );
    await answer.text();
    await (await ask()).text();
    await ask({ traceparent: `00-${TRACE}-${PARENT}-00` }); // its client does not sample it
    expect((await ask({}, { model: 'none' })).status).toBe(404);
    await server.shutDown(1000);
    expect(violations).toEqual([]);
    const [first, second, unknown, ...others] = spans();
    expect([others.length, plain(unknown.attributes)['error.type']]).toEqual([0, 'model_not_found']);
    expect(first).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, traceState: 'a=b', name: 'chat toy', kind: 2 });
    expect(plain(first.attributes)).toEqual({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'ruvllm',
      'gen_ai.request.model': 'toy',
      'gen_ai.request.choice.count': 1,
      'gen_ai.request.max_tokens': 3,
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.seed': 1,
      'gen_ai.response.id': answer.headers.get('x-request-id'),
      'gen_ai.response.model': 'toy',
      'gen_ai.usage.input_tokens': expect.any(Number) as number,
      'gen_ai.usage.output_tokens': 3,
      'gen_ai.response.finish_reasons': ['length'],
    });
    expect(second.parentSpanId).toBeUndefined();
    expect(second.traceId).not.toBe(TRACE);
    expect(BigInt(first.endTimeUnixNano) > BigInt(first.startTimeUnixNano)).toBe(true);
    const [{ headers, body }] = received as [Received];
    expect([headers['x-token'], headers['content-type']]).toEqual(['a b', 'application/json']);
    expect(plain(body.resourceSpans[0].resource.attributes)).toEqual({ 'service.name': 'mine', 'service.version': '0.0.0', 'host.name': 'here' }); // prettier-ignore
    expect(JSON.stringify(received)).not.toContain('secret');
  });

  test('of failed requests have the error', async () => {
    const { url, spans } = await openCollector();
    const { server, ask } = await openServer(url);
    await ask({}, { messages: [{ role: 'user', content: 'a '.repeat(5000) }] });
    await server.shutDown(1000);
    const [span] = spans();
    expect([span.status, plain(span.attributes)['error.type']]).toEqual([{ code: 2 }, 'context_overflow']);
  });
});

describe('[TR3] the exporter', () => {
  const span = (name: string) => ({ traceId: '1'.repeat(32), spanId: '2'.repeat(16), parentId: null, traceState: null, name, kind: 'server' as const, startNs: 1n, endNs: 2n, attributes: {}, errorType: null }); // prettier-ignore
  const open = (url: string, clock = createManualClock(), send: typeof fetch = fetch) => {
    const reports: string[] = [];
    const report = (message: string): void => void reports.push(message);
    const options = readOtlpOptions(url, { OTEL_METRICS_EXPORTER: 'none' })!;
    const exporter = createOtlpExporter({ options, scope: { version: '1', resource: {} }, clock, report, fetch: send });
    return { exporter, clock, reports };
  };
  const until = async (isReached: () => boolean, each = (): void => {}): Promise<void> => {
    while (!isReached()) {
      each();
      await settle();
    }
  };

  test('drops and counts spans that its queue has no place for, and never waits for the collector', async () => {
    const { exporter, reports, clock } = open('http://127.0.0.1:1');
    for (let i = 0; i < 2 * MAX_QUEUE + 512; i++) exporter.add(span(String(i)));
    // 512 are on their way, the queue is full.
    expect(exporter.numDropped).toBe(MAX_QUEUE);
    await until(
      () => exporter.numDropped === 2 * MAX_QUEUE + 512,
      () => clock.advance(10_000),
    );
    expect([exporter.numExported, reports.length]).toEqual([0, 1]);
    expect(reports[0]).toContain('127.0.0.1:1');
  });

  test('sends spans again that the collector may take later, and not those that it refuses', async () => {
    const { url, received, spans } = await openCollector([503, 429, 200, 400]);
    const { exporter, clock } = open(url);
    exporter.add(span('later'));
    clock.advance(5000);
    await until(
      () => exporter.numExported === 1,
      () => clock.advance(1000),
    );
    exporter.add(span('refused'));
    clock.advance(5000);
    await until(
      () => exporter.numDropped === 1,
      () => clock.advance(1000),
    );
    expect([received.length, spans().map(({ name }) => name)]).toEqual([4, ['later', 'later', 'later', 'refused']]);
  });

  test('waits as long as the collector says, up to 60 s, and not at all for a date', async () => {
    const clock = createManualClock();
    const answers = ['99999999', 'Fri, 31 Dec 2027 23:59:59 GMT', '-5', null];
    const asked: number[] = [];
    const { exporter } = open('http://collector', clock, async () => {
      asked.push(clock.now());
      const wait = answers.shift();
      return new Response(null, { status: wait === null ? 200 : 503, headers: wait == null ? {} : { 'retry-after': wait } }); // prettier-ignore
    });
    exporter.add(span('one'));
    clock.advance(5000);
    for (let i = 0; i < 100 && exporter.numExported === 0; i++) {
      await settle();
      clock.advance(1000);
    }
    expect([exporter.numExported, asked.map((ms) => ms - asked[0]!)]).toEqual([1, [0, 60_000, 62_000, 66_000]]);
  });

  test('keeps a bounded queue in front of a collector that hangs, and ends in time', async () => {
    const clock = createManualClock();
    const hang: typeof fetch = (_url, { signal } = {}) =>
      new Promise((_, reject) => onAbort(signal!, () => reject(new Error('aborted'))));
    const { exporter } = open('http://collector', clock, hang);
    for (let i = 0; i < 3 * MAX_QUEUE; i++) exporter.add(span(String(i)));
    expect(exporter.numDropped).toBe(2 * MAX_QUEUE - 512);
    let isClosed = false;
    const closed = exporter.close(2000).then(() => (isClosed = true));
    clock.advance(1999);
    await settle();
    expect(isClosed).toBe(false);
    clock.advance(1);
    await closed;
  });

  test('does not read an endless answer', async () => {
    let isCancelled = false;
    const http = createServer((request, response) => {
      const piece = 'x'.repeat(65_536);
      const write = (): void => {
        while (!response.destroyed && response.write(piece));
        response.once('drain', write);
      };
      request.resume().on('end', write);
      response.on('close', () => (isCancelled = true));
    });
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
    closing.push(async () => {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    });
    const { exporter, clock } = open(`http://127.0.0.1:${(http.address() as AddressInfo).port}`);
    exporter.add(span('one'));
    clock.advance(5000);
    await expect.poll(() => [exporter.numExported, isCancelled]).toEqual([1, true]);
  });

  test('is metered in /metrics', async () => {
    const { url } = await openCollector();
    const { server, ask } = await openServer(url);
    await (await ask()).text();
    const read = async (): Promise<string> => (await server.fetch(new Request('http://localhost/metrics'))).text();
    while (!(await read()).includes('ruvllm_otlp_spans_total{result="exported"} 1')) await settle();
    expect(await read()).toContain('ruvllm_otlp_spans_total{result="dropped"} 0');
  });
});

test('[TR4] metrics by OTLP have the same values as /metrics, and those for generative AI', async () => {
  const { url, received, violations } = await openCollector();
  const { server, ask } = await openServer(url, { OTEL_TRACES_EXPORTER: 'none' });
  await (await ask()).text();
  await server.shutDown(1000);
  expect(violations).toEqual([]);
  expect(received.map(({ path }) => path)).toEqual(['/v1/metrics']);
  const metrics = received[0]!.body.resourceMetrics[0].scopeMetrics[0].metrics as any[];
  const find = (name: string): any => metrics.find((metric) => metric.name === name);
  expect(find('ruvllm_requests_total').sum.dataPoints[0]).toMatchObject({ asDouble: 1 });
  const usage = find('gen_ai.client.token.usage');
  expect([usage.unit, usage.histogram.aggregationTemporality]).toEqual(['{token}', 2]);
  const output = usage.histogram.dataPoints.find((point: any) => plain(point.attributes)['gen_ai.token.type'] === 'output'); // prettier-ignore
  expect([output.count, output.sum, output.bucketCounts.slice(0, 3)]).toEqual(['1', 3, ['0', '1', '0']]);
  expect(plain(output.attributes)).toEqual({ 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'ruvllm', 'gen_ai.response.model': 'toy', 'gen_ai.token.type': 'output' }); // prettier-ignore
  for (const name of ['time_to_first_token', 'time_per_output_token', 'request.duration']) {
    expect(find(`gen_ai.server.${name}`)).toMatchObject({ unit: 's', histogram: { dataPoints: [{ count: '1' }] } });
  }
});

describe('options', () => {
  test('are OpenTelemetry’s variables; those of a signal count more', () => {
    expect(readOtlpOptions(undefined, {})).toBeNull();
    expect(readOtlpOptions('http://a', { OTEL_SDK_DISABLED: 'true' })).toBeNull();
    expect(readOtlpOptions('http://a/', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://b' })).toMatchObject({ tracesUrl: 'http://a/v1/traces', metricsUrl: 'http://a/v1/metrics' }); // prettier-ignore
    expect(readOtlpOptions(undefined, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://t/x' })).toMatchObject({ tracesUrl: 'http://t/x', metricsUrl: null }); // prettier-ignore
    expect(readOtlpOptions('http://a', { OTEL_RESOURCE_ATTRIBUTES: 'a=1,b=x%2Cy' })!.resource).toEqual({ a: '1', b: 'x,y' }); // prettier-ignore
  });

  test.each([
    ['nonsense', {}],
    ['http://a', { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
    ['http://a', { OTEL_EXPORTER_OTLP_TIMEOUT: 'soon' }],
    ['http://a', { OTEL_EXPORTER_OTLP_HEADERS: 'novalue' }],
  ])('%s with %o is refused', (url, environment) => {
    expect(() => readOtlpOptions(url, environment as Record<string, string>)).toThrow(/must be|only http\/json/);
  });
});
