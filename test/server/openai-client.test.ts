// The official client against a real server on loopback, with a random model of our own behind it.
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';

let server: DistServer;
let client: OpenAI;

beforeAll(async () => {
  if (!isServerBuilt) return;
  server = await startDistServer();
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
});
afterAll(() => server?.[Symbol.asyncDispose]());

const messages = [{ role: 'user' as const, content: 'hello there' }];

describe.skipIf(!isServerBuilt)('openai', () => {
  test('a chat, plain', async () => {
    const answer = await client.chat.completions.create({ model: 'random', messages, max_tokens: 12, seed: 1 });
    expect(answer).toMatchObject({ object: 'chat.completion', model: 'random' });
    expect(answer.choices).toHaveLength(1);
    expect(answer.choices[0]!.message).toMatchObject({ role: 'assistant', content: expect.any(String) });
    expect(answer.usage!.completion_tokens).toBeLessThanOrEqual(12);
    expect(answer.usage!.total_tokens).toBe(answer.usage!.prompt_tokens + answer.usage!.completion_tokens);
  });

  test('the stream, put together, is the plain answer', async () => {
    const ask = { model: 'random', messages, max_tokens: 30, seed: 3 } as const;
    const plain = await client.chat.completions.create(ask);
    const stream = await client.chat.completions.create({
      ...ask,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks[0]!.choices[0]!.delta).toEqual({ role: 'assistant', content: '', refusal: null });
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');
    expect(text).toBe(plain.choices[0]!.message.content);
    expect(chunks.length).toBeGreaterThan(10);
    const last = chunks.at(-1)!;
    expect(last.choices).toEqual([]);
    expect(last.usage).toMatchObject({
      prompt_tokens: plain.usage!.prompt_tokens,
      completion_tokens: plain.usage!.completion_tokens,
    });
    expect(last.usage!.prompt_tokens_details!.cached_tokens).toBe(plain.usage!.prompt_tokens - 1);
    expect(chunks.at(-2)!.choices[0]!.finish_reason).toBe(plain.choices[0]!.finish_reason);
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  });
});
