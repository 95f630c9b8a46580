// What the official client does by itself when it is told to come back.
import OpenAI, { RateLimitError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';

let server: DistServer;
beforeAll(async () => {
  if (isServerBuilt) server = await startDistServer({ limits: { burst: 1, requestsPerMinute: 60 } });
});
afterAll(() => server?.[Symbol.asyncDispose]());

describe.skipIf(!isServerBuilt)('retries', () => {
  const ask = { model: 'random', messages: [{ role: 'user' as const, content: 'hi' }], max_tokens: 1 };

  test('a 429 says when, and the client comes back then', async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 2 });
    const impatient = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    await client.chat.completions.create(ask);
    const refused = await impatient.chat.completions.create(ask).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(RateLimitError);
    expect((refused as RateLimitError).headers.get('retry-after')).toBe('1');
    expect((await client.chat.completions.create(ask)).choices).toHaveLength(1);
  });

  test('what cannot succeed is not tried again', async () => {
    let numCalls = 0;
    const client = new OpenAI({
      baseURL: `${server.url}/v1`,
      apiKey: 'none',
      maxRetries: 3,
      fetch: (url, options) => {
        numCalls++;
        return fetch(url, options);
      },
    });
    await expect(client.embeddings.create({ model: 'random', input: [] })).rejects.toMatchObject({ status: 400 });
    expect(numCalls).toBe(1);
  });
});
