import { expect, test } from 'vitest';
import { createTestServer, entryOf } from '../../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../../test/support/toy-runtime.ts';
import { createRandom } from '../../../core/random.ts';
import { createSampler } from '../../../sampling/sampler.ts';
import type { Sampler, SamplingParams } from '../../../sampling/types.ts';

/** The sampler of the toy model reports no alternatives. */
const withAlternatives = (params: SamplingParams): Sampler => createSampler(params, createRandom(params.seed ?? 0));

test('[G6] an answer with many alternatives per token is written in pieces, with the same content', async () => {
  const { model } = await createToyRuntime({ createSampler: withAlternatives });
  const server = createTestServer([entryOf('toy', async () => model)]);
  const send = (more: object): Promise<Response> =>
    server.fetch(
      new Request('http://localhost/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'toy',
          messages: [{ role: 'user', content: 'hi' }],
          n: 16,
          seed: 3,
          max_tokens: 60,
          ignore_eos: true,
          logprobs: true,
          top_logprobs: 20,
          ...more,
        }),
      }),
    );
  const response = await send({});
  const sizes: number[] = [];
  let text = '';
  const decoder = new TextDecoder();
  for await (const part of response.body!) {
    sizes.push(part.length);
    text += decoder.decode(part, { stream: true });
  }
  expect(sizes.length).toBeGreaterThan(16);
  expect(Math.max(...sizes)).toBeLessThan(250_000);
  // The second answer finds the prompt of the first in the cache.
  const {
    id: _id,
    created: _created,
    timings: _timings,
    usage: _usage,
    ...body
  } = JSON.parse(text) as Record<string, unknown>;
  // Stored ones are written as a whole.
  const stored = (await (await send({ store: true })).json()) as Record<string, unknown>;
  expect(body).toEqual({ ...stored, id: undefined, created: undefined, timings: undefined, usage: undefined });
  const [choice] = body['choices'] as { logprobs: { content: { top_logprobs: unknown[] }[] } }[];
  expect(choice!.logprobs.content.map((one) => one.top_logprobs.length)).toEqual(Array(60).fill(20));
});

test('[G6] a completion with many alternatives per token is written in pieces, with the same content', async () => {
  const { model } = await createToyRuntime({ createSampler: withAlternatives });
  const server = createTestServer([entryOf('toy', async () => model)]);
  const send = (n: number): Promise<Response> =>
    server.fetch(
      new Request('http://localhost/v1/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'toy', prompt: 'hi', n, seed: 3, max_tokens: 60, ignore_eos: true, logprobs: 5 }),
      }),
    );
  const response = await send(16);
  let numParts = 0;
  let text = '';
  const decoder = new TextDecoder();
  for await (const part of response.body!) {
    numParts++;
    text += decoder.decode(part, { stream: true });
  }
  expect(numParts).toBe(18);
  interface Body {
    readonly choices: readonly { readonly text: string; readonly logprobs: { readonly tokens: unknown[] } }[];
    readonly usage: { readonly completion_tokens: number };
  }
  const { choices, usage } = JSON.parse(text) as Body;
  expect(choices.map(({ logprobs }) => logprobs.tokens.length)).toEqual(Array(16).fill(60));
  expect(usage.completion_tokens).toBe(960);
  // Two answers are short enough to be written at once.
  const few = (await (await send(2)).json()) as Body;
  expect(few.choices).toEqual(choices.slice(0, 2));
});
