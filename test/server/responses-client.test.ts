// `client.responses` of the official client against a real server on loopback, with a random model.
import OpenAI, { NotFoundError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';
import { hasOpenapi, violationsOf } from '../support/openapi-schemas.ts';

let server: DistServer;
let client: OpenAI;

beforeAll(async () => {
  if (!isServerBuilt) return;
  server = await startDistServer();
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
});
afterAll(() => server?.[Symbol.asyncDispose]());

const ask = { model: 'random', input: 'hello there', max_output_tokens: 30 };
/** Our extension: the same answer each time. */
const seeded = { ...ask, seed: 3 };

describe.skipIf(!isServerBuilt)('openai responses', () => {
  test('creates, retrieves, continues and deletes a response', async () => {
    const first = await client.responses.create({ ...seeded, instructions: 'be kind', metadata: { a: 'b' } });
    expect(first).toMatchObject({ object: 'response', model: 'random', metadata: { a: 'b' } });
    expect(first.output_text).not.toBe('');
    const again = await client.responses.retrieve(first.id);
    expect(again.output_text).toBe(first.output_text);
    const second = await client.responses.create({ ...seeded, input: 'go on', previous_response_id: first.id });
    expect(second.usage!.input_tokens).toBeGreaterThan(first.usage!.input_tokens);
    await client.responses.delete(first.id);
    await expect(client.responses.retrieve(first.id)).rejects.toBeInstanceOf(NotFoundError);
    const lost = client.responses.create({ ...seeded, previous_response_id: first.id });
    await expect(lost).rejects.toMatchObject({ status: 404, code: 'previous_response_not_found' });
  });

  test('returns the input items and token count, and rejects cancelling', async () => {
    const first = await client.responses.create({ ...seeded, max_output_tokens: 4 });
    const next = { model: 'random', input: 'go on', previous_response_id: first.id };
    const second = await client.responses.create({ ...seeded, ...next, max_output_tokens: 4 });
    const items = [];
    for await (const item of client.responses.inputItems.list(second.id, { limit: 2, order: 'asc' })) items.push(item);
    expect(items.map((item) => item.type === 'message' && item.role)).toEqual(['user', 'assistant', 'user']);
    expect(items[1]).toMatchObject({ content: [{ type: 'output_text', text: first.output_text }] });
    expect(items[2]).toMatchObject({ content: [{ type: 'input_text', text: 'go on' }] });
    const count = await client.responses.inputTokens.count(next);
    if (hasOpenapi) expect(violationsOf('TokenCountsResource', count)).toEqual([]);
    expect(count.input_tokens).toBe(second.usage!.input_tokens);
    await expect(client.responses.cancel(second.id)).rejects.toMatchObject({
      status: 400,
      code: 'response_not_cancellable',
    });
    await expect(client.responses.cancel('resp_x')).rejects.toBeInstanceOf(NotFoundError);
  });

  test('a conversation by id equals the conversation sent whole', async () => {
    const first = await client.responses.create({ ...seeded, max_output_tokens: 8 });
    const byId = await client.responses.create({ ...seeded, input: 'go on', previous_response_id: first.id });
    const whole = await client.responses.create({
      ...seeded,
      input: [{ role: 'user', content: 'hello there' }, ...(first.output as []), { role: 'user', content: 'go on' }],
    });
    expect(whole.output_text).toBe(byId.output_text);
    expect(whole.usage!.input_tokens).toBe(byId.usage!.input_tokens);
    expect(whole.usage!.input_tokens_details.cached_tokens).toBe(byId.usage!.input_tokens - 1);
  });

  test('the concatenated stream equals the plain answer', async () => {
    const plain = await client.responses.create(seeded);
    const stream = client.responses.stream(seeded);
    const types: string[] = [];
    let text = '';
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === 'response.output_text.delta') text += event.delta;
    }
    const response = await stream.finalResponse();
    expect(text).toBe(plain.output_text);
    expect(response.output_text).toBe(plain.output_text);
    expect(response.status).toBe(plain.status);
    expect(types.filter((type) => type !== 'response.output_text.delta')).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      `response.${plain.status}`,
    ]);
  });

  test('is incomplete at the token limit', async () => {
    const cut = await client.responses.create({ ...seeded, max_output_tokens: 2 });
    expect(cut).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    expect(cut.usage!.output_tokens).toBe(2);
  });

  test.skipIf(!hasOpenapi)('returns log-probabilities as described', async () => {
    const response = await client.responses.create({
      ...seeded,
      max_output_tokens: 4,
      include: ['message.output_text.logprobs'],
      top_logprobs: 2,
    });
    const [item] = response.output as OpenAI.Responses.ResponseOutputMessage[];
    const [part] = item!.content as OpenAI.Responses.ResponseOutputText[];
    expect(part!.logprobs).toHaveLength(4);
    expect(part!.logprobs![0]!.top_logprobs).toHaveLength(2);
    expect(violationsOf('Response', response)).toEqual([]);
  });

  test('names a missing response', async () => {
    const tools = [{ type: 'web_search' as const }];
    await expect(client.responses.create({ ...ask, tools })).rejects.toMatchObject({
      status: 400,
      param: 'tools[0].type',
    });
    const long = client.responses.create({ ...ask, input: 'hello '.repeat(600) });
    await expect(long).rejects.toMatchObject({ status: 400, code: 'context_length_exceeded' });
  });

  test('a disconnect ends the answer', async () => {
    const stream = await client.responses.create({
      ...ask,
      max_output_tokens: 400,
      ignore_eos: true,
      stream: true,
    } as never);
    for await (const event of stream as unknown as AsyncIterable<{ type: string }>) {
      if (event.type === 'response.output_text.delta') break;
    }
    await expect.poll(async () => (await server.model.stats()).numRunning).toBe(0);
  });
});
