import { expect, test } from 'vitest';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createMetricRegistry, writePrometheus } from './registry.ts';

test('writes counters, histograms and gauges in the text format', () => {
  const registry = createMetricRegistry();
  const counter = registry.counter('a_total', 'What a is.');
  const histogram = registry.histogram('h', 'Times.', [1, 2]);
  registry.gauge('g', 'Now.', () => [{ labels: { m: 'x"\\\n' }, value: 5 }]);
  counter.add(1, { route: '/x' });
  counter.add(2, { route: '/x' });
  counter.add(1);
  for (const value of [0.5, 1, 1.5, 7]) histogram.observe(value, { k: 'v' });
  expect(writePrometheus(registry.collect())).toBe(
    [
      '# HELP a_total What a is.',
      '# TYPE a_total counter',
      'a_total{route="/x"} 3',
      'a_total 1',
      '# HELP h Times.',
      '# TYPE h histogram',
      'h_bucket{k="v",le="1"} 2',
      'h_bucket{k="v",le="2"} 3',
      'h_bucket{k="v",le="+Inf"} 4',
      'h_sum{k="v"} 10',
      'h_count{k="v"} 4',
      '# HELP g Now.',
      '# TYPE g gauge',
      'g{m="x\\"\\\\\\n"} 5',
      '',
    ].join('\n'),
  );
});

test('limits the number of label values that clients choose', () => {
  const registry = createMetricRegistry();
  const counter = registry.counter('a', 'A.');
  for (let i = 0; i < 5000; i++) counter.add(1, { i: String(i) });
  const lines = writePrometheus(registry.collect()).split('\n');
  expect(lines.length).toBeLessThan(1010);
  expect(lines).toContain('a{series="other"} 4000');
});

test('counts requests with their tokens and times, and reports the engine', async () => {
  const { model } = await createToyRuntime();
  const { fetch } = createTestServer([entryOf('toy', async () => model)]);
  const body = { model: 'toy', messages: [{ role: 'user', content: 'hi' }], max_tokens: 7, ignore_eos: true, n: 2 };
  await fetch(
    new Request('http://localhost/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  );
  const left = await fetch(
    new Request('http://localhost/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, n: 1, max_tokens: 200, stream: true }),
    }),
  );
  await left.body!.cancel();
  while ((await model.stats()).numRunning > 0);
  await fetch(new Request('http://localhost/secret-path-of-somebody'));
  const text = await (await fetch(new Request('http://localhost/metrics'))).text();
  for (const line of [
    'ruvllm_requests_total{route="/v1/chat/completions",status="200"} 2',
    'ruvllm_requests_total{route="unknown",status="404"} 1',
    'ruvllm_tokens_total{model="toy",kind="completion"} 14',
    'ruvllm_answers_total{model="toy",reason="length"} 2',
    'ruvllm_answers_total{model="toy",reason="unfinished"} 1',
    'ruvllm_requests_in_progress 0',
    'ruvllm_model_loaded{model="toy"} 1',
    'ruvllm_sequences_running{model="toy"} 0',
    'ruvllm_pages{model="toy"} 64',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
  expect(text).not.toContain('secret-path');
});

test('measures every token when it arrives, not once per answer', async () => {
  const { model } = await createToyRuntime();
  const { fetch } = createTestServer([entryOf('toy', async () => model)]);
  const body = { model: 'toy', messages: [{ role: 'user', content: 'hi' }], max_tokens: 7, ignore_eos: true, n: 2 };
  const headers = { 'content-type': 'application/json' };
  await fetch(
    new Request('http://localhost/v1/chat/completions', { method: 'POST', headers, body: JSON.stringify(body) }),
  );
  const text = await (await fetch(new Request('http://localhost/metrics'))).text();
  expect(text.split('\n')).toContain('ruvllm_time_to_first_token_seconds_count{model="toy"} 2');
  expect(text.split('\n')).toContain('ruvllm_inter_token_seconds_count{model="toy"} 12');
});

test('counts prefix cache hits, partial hits, misses and evictions of each model', async () => {
  const { model } = await createToyRuntime({ limits: { numPages: 8 }, spec: { maxContext: 64 } });
  const { fetch } = createTestServer([entryOf('toy', async () => model)]);
  const complete = async (prompt: string): Promise<void> => {
    const body = JSON.stringify({ model: 'toy', prompt, max_tokens: 2, ignore_eos: true });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(new Request('http://localhost/v1/completions', { method: 'POST', headers, body }));
    expect(response.status).toBe(200);
  };
  const counters = async (): Promise<string[]> => {
    const text = await (await fetch(new Request('http://localhost/metrics'))).text();
    return text.split('\n').filter((line) => /^(# TYPE )?ruvllm_prefix_/.test(line));
  };
  const expected = (hit: number, partial: number, miss: number, evictions: number): string[] => [
    '# TYPE ruvllm_prefix_lookups_total counter',
    `ruvllm_prefix_lookups_total{model="toy",result="hit"} ${hit}`,
    `ruvllm_prefix_lookups_total{model="toy",result="partial"} ${partial}`,
    `ruvllm_prefix_lookups_total{model="toy",result="miss"} ${miss}`,
    '# TYPE ruvllm_prefix_evictions_total counter',
    `ruvllm_prefix_evictions_total{model="toy"} ${evictions}`,
  ];
  const prompt = 'abcdefghij'.repeat(4);
  await complete(prompt);
  expect(await counters()).toEqual(expected(0, 0, 1, 0));
  await complete(prompt);
  expect(await counters()).toEqual(expected(1, 0, 1, 0));
  await complete(`${prompt.slice(0, 20)}${'klmnopqrst'.repeat(2)}`);
  expect(await counters()).toEqual(expected(1, 1, 1, 0));
  for (const letter of ['u', 'v', 'w']) await complete(letter.repeat(40));
  const { numEvictions } = (await model.stats()).cache;
  expect(numEvictions).toBeGreaterThan(0);
  // These share only the start token with earlier prompts.
  expect(await counters()).toEqual(expected(1, 4, 1, numEvictions));
});
