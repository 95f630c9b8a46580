// OpenAI's official client against a real server on loopback, with a random model.
import OpenAI, { BadRequestError, NotFoundError, UnprocessableEntityError } from 'openai';
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
  test('answers a chat', async () => {
    const answer = await client.chat.completions.create({ model: 'random', messages, max_tokens: 12, seed: 1 });
    expect(answer).toMatchObject({ object: 'chat.completion', model: 'random' });
    expect(answer.choices).toHaveLength(1);
    expect(answer.choices[0]!.message).toMatchObject({ role: 'assistant', content: expect.any(String) });
    expect(answer.usage!.completion_tokens).toBeLessThanOrEqual(12);
    expect(answer.usage!.total_tokens).toBe(answer.usage!.prompt_tokens + answer.usage!.completion_tokens);
  });

  test('the concatenated stream equals the plain answer', async () => {
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

  test('returns several answers, log-probabilities and text completions', async () => {
    const many = await client.chat.completions.create({
      model: 'gpt-4o-mini',
      messages,
      n: 3,
      max_tokens: 5,
      logprobs: true,
      top_logprobs: 2,
      seed: 1,
    });
    expect(many.model).toBe('random');
    expect(many.choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    for (const { logprobs } of many.choices) {
      expect(logprobs!.content!.length).toBeGreaterThan(0);
      for (const { top_logprobs: top, logprob } of logprobs!.content!) {
        expect(top).toHaveLength(2);
        expect(logprob).toBeLessThanOrEqual(0);
      }
    }
    const texts = await client.completions.create({ model: 'random', prompt: ['a b', 'c'], max_tokens: 4, echo: true });
    expect(texts.choices.map(({ text }) => text.slice(0, 3))).toEqual(['a b', expect.stringMatching(/^c/)]);
    expect(texts.choices).toHaveLength(2);
  });

  test('lists models and finds them by alias', async () => {
    const models = await client.models.list();
    expect(models.data.map(({ id }) => id)).toEqual(['random']);
    expect(await client.models.retrieve('gpt-4o-mini')).toMatchObject({ id: 'random', object: 'model' });
  });

  test("failures have the client's error classes and the reason", async () => {
    const ask = (more: object) => client.chat.completions.create({ model: 'random', messages, ...more });
    await expect(ask({ model: 'nope' })).rejects.toBeInstanceOf(NotFoundError);
    await expect(ask({ model: 'nope' })).rejects.toMatchObject({ code: 'model_not_found', param: 'model' });
    await expect(ask({ temperature: 9 })).rejects.toBeInstanceOf(BadRequestError);
    await expect(ask({ n: 1000 })).rejects.toBeInstanceOf(UnprocessableEntityError);
    await expect(ask({ temperature: 9 })).rejects.toMatchObject({
      requestID: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    const long = [{ role: 'user' as const, content: 'word '.repeat(600) }];
    await expect(ask({ messages: long })).rejects.toMatchObject({ code: 'context_length_exceeded' });
    expect((await ask({ max_tokens: 10_000 })).choices).toHaveLength(1);
    const embed = (more: object) => client.embeddings.create({ model: 'random', input: 'x', ...more });
    await expect(embed({ input: [] })).rejects.toMatchObject({ status: 400, param: 'input' });
    await expect(embed({ input: [['x']] })).rejects.toMatchObject({ status: 400, param: 'input' });
    await expect(embed({ dimensions: 1e5 })).rejects.toMatchObject({ status: 400, param: 'dimensions' });
  });

  test('returns embeddings as numbers and as bytes, complete and shortened', async () => {
    const input = ['a text', 'another text'];
    // The client requests bytes by default and decodes them.
    const { data, usage } = await client.embeddings.create({ model: 'random', input });
    const plain = await client.embeddings.create({ model: 'random', input, encoding_format: 'float' });
    expect(data.map(({ index }) => index)).toEqual([0, 1]);
    expect(plain.data.map(({ embedding }) => embedding)).toEqual(data.map(({ embedding }) => Array.from(embedding)));
    const norm = (vector: readonly number[]): number => Math.hypot(...vector);
    for (const { embedding } of plain.data) expect(norm(embedding)).toBeCloseTo(1, 5);
    expect(plain.data[0]!.embedding).not.toEqual(plain.data[1]!.embedding);
    expect(usage.total_tokens).toBeGreaterThan(3);
    const short = await client.embeddings.create({
      model: 'random',
      input: 'a text',
      dimensions: 4,
      encoding_format: 'float',
    });
    expect(short.data[0]!.embedding).toHaveLength(4);
    const scale = norm(plain.data[0]!.embedding.slice(0, 4));
    short.data[0]!.embedding.forEach((value, i) => expect(value).toBeCloseTo(plain.data[0]!.embedding[i]! / scale, 5));
  });

  test('structured output satisfies the schema, even when tokens run out', async () => {
    const schema = {
      type: 'object',
      properties: { city: { type: 'string', maxLength: 12 }, is_capital: { type: 'boolean' } },
      required: ['city', 'is_capital'],
      additionalProperties: false,
    };
    const response_format = { type: 'json_schema', json_schema: { name: 'place', schema, strict: true } } as const;
    for (const max_tokens of [60, 100]) {
      const { choices } = await client.chat.completions.create({
        model: 'random',
        messages,
        max_tokens,
        response_format,
      });
      const place = JSON.parse(choices[0]!.message.content!) as { city: string; is_capital: boolean };
      expect(Object.keys(place).sort()).toEqual(['city', 'is_capital']);
      expect([typeof place.city, typeof place.is_capital]).toEqual(['string', 'boolean']);
    }
    const object = await client.chat.completions.create({
      model: 'random',
      messages,
      max_tokens: 50,
      response_format: { type: 'json_object' },
    });
    expect(JSON.parse(object.choices[0]!.message.content!)).toBeTypeOf('object');
    const refused = { ...response_format, json_schema: { name: 'x', schema: { type: 'string', pattern: '(?=a)b' } } };
    await expect(
      client.chat.completions.create({ model: 'random', messages, max_tokens: 50, response_format: refused }),
    ).rejects.toMatchObject({ status: 400, code: 'unsupported', message: expect.stringContaining('pattern') });
  });

  test('[G2] an aborted stream frees its pages', async () => {
    const stream = await client.chat.completions.create({
      model: 'random',
      messages,
      stream: true,
      max_tokens: 400,
      ignore_eos: true,
    } as OpenAI.ChatCompletionCreateParamsStreaming);
    for await (const _chunk of stream) break;
    stream.controller.abort();
    await expectFree();
  });

  test('[G2] a hundred clients that disconnect at different moments leave no page allocated', async () => {
    const leave = async (index: number): Promise<void> => {
      const controller = new AbortController();
      const body = {
        model: 'random',
        messages,
        max_tokens: 300,
        ignore_eos: true,
        stream: index % 2 === 0,
        n: 1 + (index % 3),
      };
      const response = fetch(`${server.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: controller.signal,
      });
      response.then((answer) => answer.text()).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, index % 7));
      controller.abort();
    };
    for (let index = 0; index < 100; index += 10) {
      await Promise.all(Array.from({ length: 10 }, (_, i) => leave(index + i)));
    }
    await expectFree();
  });

  test('sixteen concurrent streams each equal their result alone', async () => {
    const read = async (seed: number): Promise<string> => {
      const stream = await client.chat.completions.create({
        model: 'random',
        messages,
        stream: true,
        max_tokens: 24,
        seed,
      });
      let text = '';
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
      return text;
    };
    const together = await Promise.all(Array.from({ length: 16 }, (_, seed) => read(seed)));
    for (const seed of [0, 7, 15]) expect(together[seed]).toBe(await read(seed));
    expect(new Set(together).size).toBeGreaterThan(8);
  });
});

async function expectFree(): Promise<void> {
  for (;;) {
    const stats = await server.model.stats();
    if (stats.numRunning + stats.numWaiting > 0) continue;
    expect(stats.numFreePages).toBe(stats.numPages);
    const slots = (await (await fetch(`${server.url}/slots`)).json()) as { num_requests: number };
    if (slots.num_requests === 0) return;
  }
}
