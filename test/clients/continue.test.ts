// The adapters of Continue, with `apiBase` as their address.
import { constructLlmApi } from '@continuedev/openai-adapters';
import { describe, expect, test } from 'vitest';
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

const messages = [{ role: 'user' as const, content: QUESTION }];
const { signal } = new AbortController();
const weather = {
  type: 'function' as const,
  function: { name: 'weather', description: 'Of a city', parameters: CITY_SCHEMA },
};

describe.each(['openai', 'llama.cpp', 'lmstudio', 'vllm', 'anthropic'] as const)('the provider %s', (provider) => {
  async function connect(answers: readonly string[]) {
    const { baseURL, requests } = await serve(answers);
    const api = constructLlmApi({ provider, apiKey: 'none', apiBase: `${baseURL}/` } as never)!;
    return { api, requests };
  }

  test('chat and stream', async () => {
    const { api } = await connect([ANSWER, ANSWER]);
    const whole = await api.chatCompletionNonStream({ model: 'm', messages, max_tokens: 50, stream: false }, signal);
    expect(whole.choices[0]!.message.content).toBe(ANSWER);
    let text = '';
    const body = { model: 'm', messages, max_tokens: 50, stream: true as const };
    for await (const chunk of api.chatCompletionStream(body, signal)) text += chunk.choices[0]?.delta.content ?? '';
    expect(text).toBe(ANSWER);
  });

  test('tools and a second turn', async () => {
    const { api, requests } = await connect([CALL, ANSWER]);
    const body = { model: 'm', tools: [weather], max_tokens: 200, stream: true as const };
    let id = '';
    let args = '';
    for await (const { choices } of api.chatCompletionStream({ ...body, messages }, signal)) {
      const call = choices[0]?.delta.tool_calls?.[0];
      id ||= call?.id ?? '';
      args += call?.function?.arguments ?? '';
    }
    const { city } = JSON.parse(args) as { city: string };
    const call = { id, type: 'function' as const, function: { name: 'weather', arguments: args } };
    const turns = [
      ...messages,
      { role: 'assistant' as const, content: '', tool_calls: [call] },
      { role: 'tool' as const, tool_call_id: id, content: weatherOf(city) },
    ];
    let text = '';
    for await (const { choices } of api.chatCompletionStream({ ...body, messages: turns }, signal)) {
      text += choices[0]?.delta.content ?? '';
    }
    expect(text).toBe(ANSWER);
    expect(requests[1]!.prompt).toMatch(CALL_AND_RESULT);
  });

  test('an error', async () => {
    const { api } = await connect([]);
    const body = { model: 'none', messages, max_tokens: 50, stream: false as const };
    // The adapter for Anthropic's format reads the content of an error without looking at the status.
    const message = provider === 'anthropic' ? /undefined/ : /404/;
    await expect(api.chatCompletionNonStream(body, signal)).rejects.toThrow(message);
  });
});

describe('the provider openai', () => {
  const connect = async (answers: readonly string[]) => {
    const { baseURL, requests } = await serve(answers);
    return { api: constructLlmApi({ provider: 'openai', apiKey: 'none', apiBase: `${baseURL}/` })!, requests };
  };

  test('structured output', async () => {
    const { api, requests } = await connect([PLACE]);
    const response_format = {
      type: 'json_schema' as const,
      json_schema: { name: 'place', schema: PLACE_SCHEMA, strict: true },
    };
    const { choices } = await api.chatCompletionNonStream({ model: 'm', messages, response_format }, signal);
    expect(JSON.parse(choices[0]!.message.content!)).toEqual({ city: 'Rome', isCapital: true });
    expect(requests[0]!.grammar).toMatchObject({ schema: PLACE_SCHEMA });
  });

  test('completions, models and embeddings', async () => {
    const { api } = await connect([ANSWER]);
    const { choices } = await api.completionNonStream({ model: 'm', prompt: QUESTION, stream: false }, signal);
    expect(choices[0]!.text).toBe(ANSWER.slice(0, 16));
    expect((await api.list()).map(({ id }) => id)).toEqual(['m', 'toy']);
    const { data } = await api.embed({ model: 'toy', input: ['a text'] });
    expect(data[0]!.embedding.length).toBeGreaterThan(0);
  });
});
