// LlamaIndex, with `baseURL` as its address.
import { OpenAI, OpenAIEmbedding } from '@llamaindex/openai';
import { agent } from '@llamaindex/workflow';
import { tool } from 'llamaindex';
import { expect, test } from 'vitest';
import { z } from 'zod/v3';
import {
  ANSWER,
  CALL,
  CALL_AND_RESULT,
  PLACE,
  PLACE_SCHEMA,
  QUESTION,
  serve,
  weatherOf,
} from '../support/client-server.ts';

const messages = [{ role: 'user' as const, content: QUESTION }];

async function connect(answers: readonly string[], more: object = {}) {
  const { baseURL, requests } = await serve(answers);
  const llm = new OpenAI({ model: 'm', apiKey: 'none', baseURL, maxRetries: 0, maxTokens: 200, ...more });
  return { llm, requests, baseURL };
}

const weather = tool({
  name: 'weather',
  description: 'Of a city',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }: { city: string }) => weatherOf(city),
});

test('chat', async () => {
  const { llm } = await connect([ANSWER]);
  expect((await llm.chat({ messages })).message.content).toBe(ANSWER);
});

test('stream', async () => {
  const { llm } = await connect([ANSWER]);
  let text = '';
  for await (const { delta } of await llm.chat({ messages, stream: true })) text += delta;
  expect(text).toBe(ANSWER);
});

test('an agent with a tool, and the turn after it', async () => {
  const { llm, requests } = await connect([CALL, ANSWER]);
  const { data } = await agent({ llm, tools: [weather] }).run(QUESTION);
  expect(data.result).toBe(ANSWER);
  expect(requests[1]!.prompt).toMatch(CALL_AND_RESULT);
});

test('structured output', async () => {
  const response_format = { type: 'json_schema', json_schema: { name: 'place', schema: PLACE_SCHEMA, strict: true } };
  const { llm, requests } = await connect([PLACE], { additionalChatOptions: { response_format } });
  const { message } = await llm.chat({ messages });
  expect(JSON.parse(message.content as string)).toEqual({ city: 'Rome', isCapital: true });
  expect(requests[0]!.grammar).toMatchObject({ type: 'json_schema', schema: PLACE_SCHEMA });
});

test('embeddings', async () => {
  const { baseURL } = await connect([]);
  const embedding = new OpenAIEmbedding({ model: 'toy', apiKey: 'none', baseURL, maxRetries: 0 });
  const vectors = await embedding.getTextEmbeddings(['a text', 'another text']);
  expect(vectors.map(({ length }) => length > 0)).toEqual([true, true]);
});

test('errors', async () => {
  const { llm } = await connect([], { model: 'none' });
  await expect(llm.chat({ messages })).rejects.toMatchObject({ status: 404 });
});
