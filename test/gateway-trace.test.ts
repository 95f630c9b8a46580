// One trace of a request through a gateway, its node, the node's memory and a remote engine, with a collector.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { createServeFolder, type ServedHere, type ServeFolder } from './support/serve-process.ts';

interface CollectedSpan {
  readonly service: string;
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly status?: { readonly code: number };
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string; readonly intValue?: string } }[]; // prettier-ignore
}
interface Traces {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: CollectedSpan['attributes'] };
    readonly scopeSpans: readonly { readonly spans: readonly Omit<CollectedSpan, 'service'>[] }[];
  }[];
}

const attributeOf = (attributes: CollectedSpan['attributes'], name: string): string | undefined => {
  const value = attributes.find(({ key }) => key === name)?.value;
  return value?.stringValue ?? value?.intValue;
};
const spans: CollectedSpan[] = [];
const collector = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const { resourceSpans } = JSON.parse(Buffer.concat(parts).toString()) as Traces;
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = attributeOf(resource.attributes, 'service.name')!;
      spans.push(...scopeSpans.flatMap((scope) => scope.spans.map((span) => ({ ...span, service }))));
    }
    response.end('{}');
  });
});

let folder: ServeFolder;
beforeAll(async () => {
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  folder = createServeFolder({
    contextLength: 256,
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_METRICS_EXPORTER: 'none', OTEL_BSP_SCHEDULE_DELAY: '10' },
  });
});
afterEach(async () => {
  await folder.here.stopAll();
  spans.length = 0;
});
afterAll(() => {
  folder.dispose();
  collector.close();
});

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CLIENT_SPAN = 'b7ad6b7169203331';

const serve = (...args: string[]): Promise<ServedHere> =>
  folder.here.start(`tiny=${folder.model}`, '--no-dashboard', '--threads', '1', ...args);
const startGateway = (...nodes: readonly ServedHere[]): Promise<ServedHere> =>
  folder.here.gateway(...nodes.flatMap(({ url }) => ['--node', url]));
const ask = (url: string, flags: string, body: object): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', traceparent: `00-${TRACE}-${CLIENT_SPAN}-${flags}` },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'secret words' }], max_tokens: 2, ignore_eos: true, ...body }), // prettier-ignore
  });

describe.skipIf(!isServerBuilt)('[TR7] a request through a gateway', () => {
  test('is one trace: gateway, node, memory, remote engine', async () => {
    const far = await serve('--no-memory');
    const routes = join(folder.path, 'routes.json');
    const remote = { kind: 'remote', id: 'far', url: `${far.url}/v1`, model: 'tiny', pricePerMTokens: { input: 0, output: 0 } }; // prettier-ignore
    writeFileSync(routes, JSON.stringify({ default: 'far', candidates: [remote] }));
    const node = await serve('--memory', join(folder.path, 'memory'), '--memory-embedder', 'static', '--route-config', routes); // prettier-ignore
    const gateway = await startGateway(node);
    const response = await ask(gateway.url, '01', { model: 'auto', session: 's' });
    const text = await response.text();
    expect([response.status, response.headers.get('x-route'), text]).toEqual([200, 'far', expect.any(String)]);
    await expect.poll(() => spans.length).toBe(5);
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
    const find = (name: string): CollectedSpan => spans.find((span) => span.name === name)!;
    const [outer, own, engine] = [find('POST /v1/chat/completions'), find('chat auto'), find('chat tiny')];
    expect([outer.service, outer.kind, outer.parentSpanId]).toEqual(['ruvllm-gateway', 2, CLIENT_SPAN]);
    expect(attributeOf(outer.attributes, 'http.response.status_code')).toBe('200');
    expect(attributeOf(outer.attributes, 'ruvllm.node')).toBe('1');
    expect([own.service, own.parentSpanId]).toEqual(['ruvllm', outer.spanId]);
    for (const name of ['memory recall', 'memory write']) {
      expect([name, find(name).kind, find(name).parentSpanId]).toEqual([name, 1, own.spanId]);
    }
    expect(engine.parentSpanId).toBe(own.spanId);
    expect(JSON.stringify(spans)).not.toContain('secret');
  });

  test('is in no span if its client does not sample it, and one without a trace begins one', async () => {
    const gateway = await startGateway(await serve('--no-memory'));
    expect(await (await ask(gateway.url, '00', { model: 'tiny' })).text()).toContain('choices');
    const response = await fetch(`${gateway.url}/v1/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: 'tiny', prompt: 'Once', max_tokens: 1 }) }); // prettier-ignore
    await response.text();
    await expect.poll(() => spans.length).toBe(2);
    const [outer, own] = ['POST /v1/completions', 'text_completion tiny'].map((name) => spans.find((span) => span.name === name)!); // prettier-ignore
    expect([outer!.parentSpanId, own!.parentSpanId, own!.traceId]).toEqual([undefined, outer!.spanId, outer!.traceId]);
  });

  test('has the error of a fleet without nodes', async () => {
    const node = await serve('--no-memory');
    const gateway = await startGateway(node);
    await node.stop();
    expect((await ask(gateway.url, '01', { model: 'tiny' })).status).toBe(503);
    await expect.poll(() => spans.length).toBe(1);
    expect([spans[0]!.status, attributeOf(spans[0]!.attributes, 'error.type')]).toEqual([{ code: 2 }, 'overloaded']);
  });
});
