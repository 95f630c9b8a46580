// Every metric that the Grafana dashboard names is in /metrics, with the labels that it uses.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openTestMemory } from './support/test-memory.ts';
import { createTestServer, entryOf } from './support/test-server.ts';
import { createToyRuntime } from './support/toy-runtime.ts';

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
  readonly templating: { readonly list: readonly { readonly query: string }[] };
}

const path = join(import.meta.dirname, '../docs/grafana/ruvllm.json');
const { panels, templating } = JSON.parse(readFileSync(path, 'utf8')) as Dashboard;

/** The labels of each series in the text of a scrape, by the name of its metric. */
async function readSeries(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const { model } = await createToyRuntime();
  const { fetch } = createTestServer([entryOf('toy', async () => model)], { memory: await openTestMemory() });
  const body = JSON.stringify({ model: 'toy', messages: [{ role: 'user', content: 'hi' }], max_tokens: 3, ignore_eos: true }); // prettier-ignore
  const headers = { 'content-type': 'application/json' };
  await (await fetch(new Request('http://localhost/v1/chat/completions', { method: 'POST', headers, body }))).text();
  const text = await (await fetch(new Request('http://localhost/metrics'))).text();
  const series = new Map<string, Set<string>>();
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^([a-z_:]+)(?:\{(.*)\})? \S+$/i.exec(line) ?? [];
    if (name === undefined) continue;
    const names = series.get(name) ?? new Set<string>();
    for (const [, label] of labels.matchAll(/(\w+)="/g)) names.add(label!);
    series.set(name, names);
  }
  return series;
}

test('[TR5] every metric and label of the dashboard exists', async () => {
  const series = await readSeries();
  const expressions = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const));
  expect(expressions.length).toBeGreaterThan(15);
  for (const [title, expr] of expressions) {
    const names = [...expr.matchAll(/\b(ruvllm_\w+|vllm:\w+)/g)].map(([name]) => name);
    expect(names.length, title).toBeGreaterThan(0);
    for (const name of names) {
      const labels = series.get(name);
      expect(labels, `${title}: ${name}`).toBeDefined();
      const used = [...expr.matchAll(/by \(([^)]*)\)|[{,](\w+)=~?"/g)].flatMap(([, by, label]) => by?.split(', ') ?? [label!]); // prettier-ignore
      // Prometheus adds the instance.
      for (const label of used)
        if (label !== 'instance') expect([...labels!, 'le'], `${title}: ${name}`).toContain(label);
    }
  }
  for (const { query } of templating.list) {
    for (const [name] of query.matchAll(/\bruvllm_\w+/g)) expect(series.has(name), name).toBe(true);
  }
});

test('[TR6] the names that gateways read are those of vLLM, with their labels', async () => {
  const series = await readSeries();
  for (const name of ['num_requests_running', 'num_requests_waiting', 'kv_cache_usage_perc', 'gpu_cache_usage_perc']) {
    expect([...series.get(`vllm:${name}`)!]).toEqual(['model_name']);
  }
  expect([...series.get('vllm:lora_requests_info')!]).toEqual(['max_lora', 'running_lora_adapters', 'waiting_lora_adapters']); // prettier-ignore
});
