// Habits of users of the OpenAI and Anthropic SDKs, the AI SDK and LangChain. Chats and tool loops: test/server/tool-clients.test.ts.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { embedMany, generateText, jsonSchema, Output } from 'ai';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import {
  ANSWER,
  CALL,
  CITY_SCHEMA,
  PLACE,
  PLACE_SCHEMA,
  QUESTION,
  serve,
  weatherOf,
} from '../support/client-server.ts';

const PARSED = { city: 'Rome', isCapital: true };
const texts = ['a text', 'another text'];

describe('openai', () => {
  const connect = async (answers: readonly string[]) => {
    const { baseURL, requests } = await serve(answers);
    return { client: new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 }), requests };
  };
  const messages = [{ role: 'user' as const, content: QUESTION }];

  test('functions of the older form, and a second turn', async () => {
    const { client } = await connect([CALL, ANSWER]);
    const body = { model: 'm', functions: [{ name: 'weather', parameters: CITY_SCHEMA }] };
    const { choices } = await client.chat.completions.create({ ...body, messages });
    const { message } = choices[0]!;
    const { city } = JSON.parse(message.function_call!.arguments) as { city: string };
    const result = { role: 'function' as const, name: 'weather', content: weatherOf(city) };
    const second = await client.chat.completions.create({ ...body, messages: [...messages, message, result] });
    expect(second.choices[0]!.message.content).toBe(ANSWER);
  });

  test('more tokens than fit, and settings that no template has', async () => {
    const { client } = await connect([ANSWER]);
    const request = client.chat.completions.create({
      model: 'm',
      messages,
      max_tokens: 1_000_000,
      reasoning_effort: 'high',
      made_up: true,
    } as OpenAI.ChatCompletionCreateParamsNonStreaming);
    const { data, response } = await request.withResponse();
    expect(data.choices[0]!.message.content).toBe(ANSWER);
    expect(response.headers.get('x-ignored-fields')).toBe('made_up');
  });

  test('responses of a coding agent', async () => {
    const { client } = await connect([ANSWER]);
    const response = await client.responses.create({
      model: 'm',
      instructions: 'Be kind.',
      input: QUESTION,
      tools: [{ type: 'function', name: 'shell', parameters: CITY_SCHEMA, strict: false }],
      reasoning: { effort: 'medium', summary: 'detailed' },
      truncation: 'auto',
      include: ['reasoning.encrypted_content'],
      store: false,
      prompt_cache_key: 'session',
      text: { verbosity: 'low' },
    });
    expect(response.output_text).toBe(ANSWER);
  });
});

describe('@anthropic-ai/sdk', () => {
  const connect = async (answers: readonly string[]) => {
    const { url, requests } = await serve(answers);
    return { client: new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 }), requests };
  };
  const question = { role: 'user' as const, content: QUESTION };

  test('a request as coding agents send it', async () => {
    const { client, requests } = await connect([ANSWER]);
    const mark = { cache_control: { type: 'ephemeral' as const } };
    const prompt = {
      model: 'm',
      system: [
        { type: 'text' as const, text: 'x-anthropic-billing-header: cc_version=2.1; cch=a1b2c;' },
        { type: 'text' as const, text: 'You are a coding agent.', ...mark },
      ],
      messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: QUESTION, ...mark }] }],
      tools: [{ name: 'weather', input_schema: CITY_SCHEMA, ...mark }],
      thinking: { type: 'adaptive' as const },
    };
    const stream = client.messages.stream({ ...prompt, max_tokens: 32_000, metadata: { user_id: 'user_1' } });
    const { content, usage } = await stream.finalMessage();
    expect(content).toMatchObject([{ type: 'text', text: ANSWER }]);
    expect(requests[0]!.prompt).not.toContain('billing');
    const { input_tokens: numTokens } = await client.messages.countTokens(prompt);
    const { input_tokens: input, cache_creation_input_tokens: written, cache_read_input_tokens: read } = usage;
    expect(input + written! + read!).toBe(numTokens);
    expect(written).toBeGreaterThan(0);
  });

  test('an answer that was begun', async () => {
    const { client, requests } = await connect([' sunny in Rome.']);
    const messages = [question, { role: 'assistant' as const, content: 'It is' }];
    const { content } = await client.messages.create({ model: 'm', max_tokens: 50, messages });
    expect(content).toMatchObject([{ text: ' sunny in Rome.' }]);
    expect(requests[0]!.prompt.endsWith('assistant\nIt is')).toBe(true);
  });

  test('structured output', async () => {
    const { client, requests } = await connect([PLACE]);
    const output_config = { format: { type: 'json_schema' as const, schema: PLACE_SCHEMA } };
    const { content } = await client.messages.create({
      model: 'm',
      max_tokens: 50,
      messages: [question],
      output_config,
    });
    expect(JSON.parse((content[0] as Anthropic.TextBlock).text)).toEqual(PARSED);
    expect(requests[0]!.grammar).toMatchObject({ schema: PLACE_SCHEMA });
  });

  test.each([{ type: 'any' as const }, { type: 'tool' as const, name: 'weather' }])(
    'the tool choice %j',
    async (choice) => {
      const { client } = await connect([CALL]);
      const tools = [{ name: 'weather', input_schema: CITY_SCHEMA }];
      const body = { model: 'm', max_tokens: 90, messages: [question], tools, tool_choice: choice };
      expect((await client.messages.create(body)).stop_reason).toBe('tool_use');
    },
  );
});

describe('ai with @ai-sdk/openai-compatible', () => {
  const connect = async (answers: readonly string[]) => {
    const { baseURL, requests } = await serve(answers);
    const supportsStructuredOutputs = true;
    return { provider: createOpenAICompatible({ name: 'ruvllm', baseURL, supportsStructuredOutputs }), requests };
  };

  test('structured output', async () => {
    const { provider, requests } = await connect([PLACE]);
    const output = Output.object({ schema: jsonSchema(PLACE_SCHEMA) });
    const result = await generateText({ model: provider('m'), prompt: QUESTION, output });
    expect(result.output).toEqual(PARSED);
    expect(requests[0]!.grammar).toMatchObject({ schema: PLACE_SCHEMA });
  });

  test('embeddings', async () => {
    const { provider } = await connect([]);
    const { embeddings } = await embedMany({ model: provider.embeddingModel('toy'), values: texts });
    expect(embeddings.map(({ length }) => length > 0)).toEqual([true, true]);
  });
});

describe('@langchain/openai', () => {
  const connect = async (answers: readonly string[]) => {
    const { baseURL, requests } = await serve(answers);
    const common = { apiKey: 'none', maxRetries: 0, configuration: { baseURL } };
    const embeddings = new OpenAIEmbeddings({ model: 'toy', ...common });
    return { model: new ChatOpenAI({ model: 'm', ...common }), embeddings, requests };
  };

  test('structured output', async () => {
    const { model, requests } = await connect([PLACE]);
    const place = model.withStructuredOutput(PLACE_SCHEMA, { method: 'jsonSchema', name: 'place' });
    expect(await place.invoke(QUESTION)).toEqual(PARSED);
    expect(requests[0]!.grammar).toMatchObject({ type: 'json_schema' });
  });

  test('embeddings', async () => {
    const { embeddings } = await connect([]);
    expect((await embeddings.embedDocuments(texts)).map(({ length }) => length > 0)).toEqual([true, true]);
  });
});
