// Hugging Face's client, with `endpointUrl` as its address.
import { InferenceClient } from '@huggingface/inference';
import { expect, test } from 'vitest';
import {
  ANSWER,
  CALL,
  CALL_AND_RESULT,
  CITY_SCHEMA,
  PLACE,
  PLACE_SCHEMA,
  QUESTION,
  serve,
  weatherOf,
} from '../support/client-server.ts';

const messages = [{ role: 'user', content: QUESTION }];
const weather = {
  type: 'function',
  function: { name: 'weather', description: 'Of a city', parameters: CITY_SCHEMA },
} as const;

async function connect(answers: readonly string[]) {
  const { url, requests } = await serve(answers);
  return { client: new InferenceClient('hf_none', { endpointUrl: url }), requests };
}

test('chat', async () => {
  const { client } = await connect([ANSWER]);
  const { choices, usage } = await client.chatCompletion({ model: 'm', messages, max_tokens: 50 });
  expect(choices[0]!.message.content).toBe(ANSWER);
  expect(usage.completion_tokens).toBeGreaterThan(0);
});

test('stream', async () => {
  const { client } = await connect([ANSWER]);
  let text = '';
  for await (const chunk of client.chatCompletionStream({ model: 'm', messages, max_tokens: 50 })) {
    text += chunk.choices[0]?.delta.content ?? '';
  }
  expect(text).toBe(ANSWER);
});

test('tools and a second turn', async () => {
  const { client, requests } = await connect([CALL, ANSWER]);
  const first = await client.chatCompletion({ model: 'm', messages, tools: [weather], tool_choice: 'auto' });
  const { message } = first.choices[0]!;
  const call = message.tool_calls![0]!;
  const { city } = JSON.parse(call.function.arguments as unknown as string) as { city: string };
  const second = await client.chatCompletion({
    model: 'm',
    messages: [...messages, message, { role: 'tool', tool_call_id: call.id, content: weatherOf(city) }],
    tools: [weather],
  });
  expect(second.choices[0]!.message.content).toBe(ANSWER);
  expect(requests[1]!.prompt).toMatch(CALL_AND_RESULT);
});

test('structured output', async () => {
  const { client, requests } = await connect([PLACE]);
  const { choices } = await client.chatCompletion({
    model: 'm',
    messages,
    response_format: { type: 'json_schema', json_schema: { name: 'place', schema: PLACE_SCHEMA, strict: true } },
  });
  expect(JSON.parse(choices[0]!.message.content!)).toEqual({ city: 'Rome', isCapital: true });
  expect(requests[0]!.grammar).toMatchObject({ type: 'json_schema', schema: PLACE_SCHEMA });
});

test('errors', async () => {
  const { client } = await connect([ANSWER]);
  await expect(client.chatCompletion({ model: 'none', messages })).rejects.toMatchObject({
    httpResponse: { status: 404 },
  });
  await expect(client.chatCompletion({ model: 'm', messages, temperature: 9 })).rejects.toMatchObject({
    httpResponse: { status: 400 },
  });
});
