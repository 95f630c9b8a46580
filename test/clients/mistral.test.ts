// Mistral's client, with `serverURL` as its address.
import { Mistral } from '@mistralai/mistralai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  ANSWER,
  CALL,
  CALL_AND_RESULT,
  CITY_SCHEMA,
  PLACE,
  QUESTION,
  serve,
  weatherOf,
} from '../support/client-server.ts';

const question = { role: 'user' as const, content: QUESTION };
const weather = {
  type: 'function' as const,
  function: { name: 'weather', description: 'Of a city', parameters: CITY_SCHEMA },
};

async function connect(answers: readonly string[]) {
  const { url, requests } = await serve(answers);
  return { client: new Mistral({ apiKey: 'none', serverURL: url, retryConfig: { strategy: 'none' } }), requests };
}

test('models', async () => {
  const { client } = await connect([]);
  const { data } = await client.models.list();
  expect(data).toMatchObject([{ id: 'm' }, { id: 'toy' }]);
});

test('chat', async () => {
  const { client } = await connect([ANSWER]);
  const { choices, usage } = await client.chat.complete({
    model: 'm',
    messages: [question],
    maxTokens: 50,
    randomSeed: 3,
    safePrompt: true,
  });
  expect(choices[0]!.message!.content).toBe(ANSWER);
  expect(usage.completionTokens).toBeGreaterThan(0);
});

test('stream', async () => {
  const { client } = await connect([ANSWER]);
  let text = '';
  for await (const { data } of await client.chat.stream({ model: 'm', messages: [question] })) {
    text += (data.choices[0]?.delta.content as string | null | undefined) ?? '';
  }
  expect(text).toBe(ANSWER);
});

test.each(['any', 'auto'] as const)('tools with the choice %s, and a second turn', async (toolChoice) => {
  const { client, requests } = await connect([CALL, ANSWER]);
  const request = { model: 'm', tools: [weather], parallelToolCalls: false };
  const first = await client.chat.complete({ ...request, toolChoice, messages: [question] });
  const message = first.choices[0]!.message!;
  const call = message.toolCalls![0]!;
  const { city } = JSON.parse(call.function.arguments as string) as { city: string };
  const result = { role: 'tool' as const, name: 'weather', toolCallId: call.id!, content: weatherOf(city) };
  const second = await client.chat.complete({
    ...request,
    messages: [question, { ...message, role: 'assistant' }, result],
  });
  expect(second.choices[0]!.message!.content).toBe(ANSWER);
  expect(requests[1]!.prompt).toMatch(CALL_AND_RESULT);
});

test('structured output', async () => {
  const { client, requests } = await connect([PLACE]);
  const place = z.object({ city: z.string(), isCapital: z.boolean() });
  const { choices } = await client.chat.parse({ model: 'm', messages: [question], responseFormat: place });
  expect(choices![0]!.message!.parsed).toEqual({ city: 'Rome', isCapital: true });
  expect(requests[0]!.grammar).toMatchObject({ type: 'json_schema' });
});

test('a prefix that the answer continues', async () => {
  const { client, requests } = await connect([' is sunny in Rome.']);
  const messages = [question, { role: 'assistant' as const, content: 'It', prefix: true }];
  const { choices } = await client.chat.complete({ model: 'm', messages });
  expect(choices[0]!.message!.content).toBe(' is sunny in Rome.');
  expect(requests[0]!.prompt.endsWith('assistant\nIt')).toBe(true);
});

test('embeddings', async () => {
  const { client } = await connect([]);
  const { data } = await client.embeddings.create({ model: 'toy', inputs: ['a text', 'another text'] });
  expect(data.map(({ embedding }) => embedding!.length > 0)).toEqual([true, true]);
});

test('errors', async () => {
  const { client } = await connect([ANSWER]);
  await expect(client.chat.complete({ model: 'none', messages: [question] })).rejects.toMatchObject({
    statusCode: 404,
  });
  await expect(client.chat.complete({ model: 'm', messages: [question], temperature: 9 })).rejects.toMatchObject({
    statusCode: 400,
  });
});
