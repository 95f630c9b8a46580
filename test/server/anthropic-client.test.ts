// Anthropic's official client against a real server on loopback, with a random model.
import Anthropic, { AuthenticationError, BadRequestError, NotFoundError } from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createKeyStore } from '../../src/server/keys/key-store.ts';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';
import { createMemoryKeys } from '../support/test-server.ts';

let server: DistServer;
let client: Anthropic;
let token: string;

beforeAll(async () => {
  if (!isServerBuilt) return;
  const keys = createKeyStore(createMemoryKeys(), () => Date.now());
  token = (await keys.create({ name: 'test', tenant: 'test', scopes: ['inference'] })).token;
  server = await startDistServer({ keys, isOpen: false });
  client = new Anthropic({ baseURL: server.url, apiKey: token, maxRetries: 0 });
});
afterAll(() => server?.[Symbol.asyncDispose]());

const ask = {
  model: 'random',
  max_tokens: 30,
  system: 'be kind',
  messages: [{ role: 'user' as const, content: 'hello there' }],
};
/** Our extension: the same answer each time. */
const seeded = { ...ask, seed: 3 };

const textOf = ({ content }: Anthropic.Message): string =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('');

describe.skipIf(!isServerBuilt)('@anthropic-ai/sdk', () => {
  test('lists models and retrieves one', async () => {
    const page = await client.models.list();
    expect(page.data).toMatchObject([{ type: 'model', id: 'random', display_name: 'random', lifecycle: 'active' }]);
    expect(page.hasNextPage()).toBe(false);
    expect(await client.models.retrieve('gpt-4o-mini')).toMatchObject({ id: 'random' });
    await expect(client.models.retrieve('nope')).rejects.toBeInstanceOf(NotFoundError);
  });

  test('returns a message, with both ways to send a key', async () => {
    const answer = await client.messages.create(seeded);
    expect(answer).toMatchObject({ type: 'message', role: 'assistant', model: 'random', stop_sequence: null });
    expect(answer.stop_reason).toMatch(/^(end_turn|max_tokens)$/);
    expect(textOf(answer)).not.toBe('');
    expect(answer.usage.output_tokens).toBeLessThanOrEqual(30);
    expect(answer._request_id).toMatch(/^[0-9a-f-]{36}$/);
    const bearer = new Anthropic({ baseURL: server.url, authToken: token, apiKey: null, maxRetries: 0 });
    expect(textOf(await bearer.messages.create(seeded))).toBe(textOf(answer));
  });

  test('the concatenated stream equals the plain answer', async () => {
    const plain = await client.messages.create(seeded);
    const stream = client.messages.stream(seeded);
    const types: string[] = [];
    const pieces: string[] = [];
    stream.on('streamEvent', ({ type }) => void types.push(type)).on('text', (text) => void pieces.push(text));
    const message = await stream.finalMessage();
    expect(textOf(message)).toBe(textOf(plain));
    expect(pieces.join('')).toBe(textOf(plain));
    expect(pieces.length).toBeGreaterThan(10);
    expect(types.filter((type) => type !== 'content_block_delta')).toEqual([
      'message_start',
      'content_block_start',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
    expect(message.stop_reason).toBe(plain.stop_reason);
    const { input_tokens: computed, cache_read_input_tokens: cached, output_tokens: numOutput } = message.usage;
    expect(numOutput).toBe(plain.usage.output_tokens);
    // The prompt is cached now, except its last token.
    expect(computed).toBe(1);
    expect(cached! + computed).toBe((await client.messages.countTokens(withoutLimit(ask))).input_tokens);
  });

  test('names the stop sequence', async () => {
    const whole = textOf(await client.messages.create(seeded));
    const stop = whole.slice(4, 6);
    const answer = await client.messages.create({ ...seeded, stop_sequences: ['never, ever', stop] });
    expect(answer).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: stop });
    expect(textOf(answer)).toBe(whole.slice(0, whole.indexOf(stop)));
  });

  test('max_tokens', async () => {
    const answer = await client.messages.create({ ...seeded, max_tokens: 2 });
    expect(answer).toMatchObject({ stop_reason: 'max_tokens', usage: { output_tokens: 2 } });
  });

  test("failures have the client's error classes", async () => {
    const wrong = new Anthropic({ baseURL: server.url, apiKey: 'wrong', maxRetries: 0 });
    await expect(wrong.messages.create(ask)).rejects.toMatchObject({ status: 401, type: 'authentication_error' });
    await expect(wrong.messages.create(ask)).rejects.toBeInstanceOf(AuthenticationError);
    const other = client.messages.create({ ...ask, model: 'other' });
    await expect(other).rejects.toBeInstanceOf(NotFoundError);
    const image = { type: 'image' as const, source: { type: 'url' as const, url: 'https://example.com/a.png' } };
    const looking = client.messages.create({ ...ask, messages: [{ role: 'user', content: [image] }] });
    await expect(looking).rejects.toBeInstanceOf(BadRequestError);
    await expect(looking).rejects.toMatchObject({ type: 'invalid_request_error', apiMessage: /"image"/ });
    const long = client.messages.stream({ ...ask, messages: [{ role: 'user', content: 'hello '.repeat(600) }] });
    await expect(long.finalMessage()).rejects.toMatchObject({ status: 400 });
  });

  test('a disconnect ends the answer', async () => {
    const stream = await client.messages.create({ ...ask, max_tokens: 400, ignore_eos: true, stream: true } as never);
    for await (const event of stream as unknown as AsyncIterable<{ type: string }>) {
      if (event.type === 'content_block_delta') break;
    }
    await expect.poll(async () => (await server.model.stats()).numRunning).toBe(0);
  });
});

function withoutLimit({ max_tokens: _, ...rest }: typeof ask): Omit<typeof ask, 'max_tokens'> {
  return rest;
}
