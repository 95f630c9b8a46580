// Tool loops of the clients' own helpers, with a scripted model.
import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { HumanMessage, ToolMessage, type AIMessageChunk } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { afterEach, describe, expect, test } from 'vitest';
import type { Listening } from '../../src/node/server/serve.ts';
import {
  createSpokenModel,
  type SpokenModel,
  type SpokenModelOptions,
  THINKING_TEMPLATE,
} from '../support/spoken-model.ts';
import { createTestServer, entryOf, listenOnLoopback } from '../support/test-server.ts';

const parameters = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const } },
  required: ['city'],
  additionalProperties: false,
};
const callOf = (city: string): string =>
  `<tool_call>\n{"name": "weather", "arguments": {"city": "${city}"}}\n</tool_call>`;
const ANSWERS = [`Let me see.${callOf('Rome')}\n${callOf('Oslo')}`, 'Sun and rain.'];
const question = 'How is it in Rome and Oslo?';
const weatherOf = (city: string): string => (city === 'Rome' ? 'sun' : 'rain');
const openaiTool = {
  type: 'function' as const,
  function: { name: 'weather', description: 'Of a city', parameters, strict: true },
};

const open: Listening[] = [];
afterEach(async () => {
  for (const listening of open.splice(0)) await listening.close(1000);
});

async function serve(
  answers = ANSWERS,
  options: SpokenModelOptions = {},
): Promise<{ url: string; spoken: SpokenModel }> {
  const spoken = createSpokenModel(answers, options);
  const listening = await listenOnLoopback(createTestServer([entryOf('m', async () => spoken.model)]));
  open.push(listening);
  return { url: listening.url, spoken };
}

/** The model saw both calls, followed by their results in the same order. */
function expectResultsShown({ requests }: SpokenModel): void {
  const { prompt } = requests.at(-1)!;
  expect(prompt).toContain(`${callOf('Rome')}${callOf('Oslo')}<|im_end|>`);
  expect(prompt).toMatch(/tool\n"?sun"?<\|im_end\|>\n<\|im_start\|>tool\n"?rain"?<\|im_end\|>/);
}

describe('openai', () => {
  const connect = (url: string): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });

  test.each([false, true])('runTools, streamed: %s', async (stream) => {
    const { url, spoken } = await serve();
    const cities: string[] = [];
    const body = {
      model: 'm',
      messages: [{ role: 'user' as const, content: question }],
      tools: [
        {
          type: 'function' as const,
          function: {
            name: 'weather',
            description: 'Of a city',
            parameters,
            parse: JSON.parse as (text: string) => { city: string },
            function({ city }: { city: string }) {
              cities.push(city);
              return weatherOf(city);
            },
          },
        },
      ],
    };
    const { completions } = connect(url).chat;
    const runner = stream ? completions.runTools({ ...body, stream: true }) : completions.runTools(body);
    expect(await runner.finalContent()).toBe('Sun and rain.');
    expect(cities).toEqual(['Rome', 'Oslo']);
    expectResultsShown(spoken);
  });

  test('the stream helper assembles calls and reports their arguments as they arrive', async () => {
    const { url } = await serve();
    const stream = connect(url).chat.completions.stream({
      model: 'm',
      messages: [{ role: 'user', content: question }],
      tools: [openaiTool],
    });
    let numDeltas = 0;
    stream.on('tool_calls.function.arguments.delta', () => numDeltas++);
    const { choices } = await stream.finalChatCompletion();
    expect(choices[0]!.finish_reason).toBe('tool_calls');
    expect(choices[0]!.message.tool_calls!.map((call) => call.function.parsed_arguments)).toEqual([
      { city: 'Rome' },
      { city: 'Oslo' },
    ]);
    expect(numDeltas).toBeGreaterThan(10);
  });

  test('responses: parsed calls, outputs sent to the stored response; the same streamed', async () => {
    const { url, spoken } = await serve([`<think>\nhm</think>${ANSWERS[0]!}`, ANSWERS[1]!], {
      template: THINKING_TEMPLATE,
    });
    const client = connect(url);
    const tools = [{ type: 'function' as const, name: 'weather', parameters, strict: true }];
    const first = await client.responses.parse({ model: 'm', input: question, tools });
    const calls = first.output.filter((item) => item.type === 'function_call');
    expect(calls.map((call) => call.parsed_arguments as unknown)).toEqual([{ city: 'Rome' }, { city: 'Oslo' }]);
    expect(first.output[0]).toMatchObject({ type: 'reasoning', content: [{ text: 'hm' }] });
    const input = calls.map(({ call_id, parsed_arguments: args }) => ({
      type: 'function_call_output' as const,
      call_id,
      output: weatherOf((args as { city: string }).city),
    }));
    const stream = client.responses.stream({ model: 'm', previous_response_id: first.id, input, tools });
    expect((await stream.finalResponse()).output_text).toBe('Sun and rain.');
    expectResultsShown(spoken);

    const { url: again } = await serve();
    const calling = connect(again).responses.stream({ model: 'm', input: question, tools });
    let text = '';
    calling.on('response.function_call_arguments.delta', ({ delta }) => (text += delta));
    const { output } = await calling.finalResponse();
    expect(output.map(({ type }) => type)).toEqual(['message', 'function_call', 'function_call']);
    expect(text).toBe('{"city": "Rome"}{"city": "Oslo"}');
  });
});

describe('@anthropic-ai/sdk', () => {
  const tools = [{ name: 'weather', description: 'Of a city', input_schema: parameters }];
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: question }];
  const connect = (url: string): Anthropic => new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });

  test('runs tool_use and tool_result until the end of the turn', async () => {
    const { url, spoken } = await serve();
    const client = connect(url);
    const turns = [...messages];
    for (;;) {
      const answer = await client.messages.create({ model: 'm', max_tokens: 400, messages: turns, tools });
      turns.push({ role: 'assistant', content: answer.content });
      if (answer.stop_reason !== 'tool_use') break;
      const results = answer.content.flatMap((block) =>
        block.type === 'tool_use'
          ? [
              {
                type: 'tool_result' as const,
                tool_use_id: block.id,
                content: weatherOf((block.input as { city: string }).city),
              },
            ]
          : [],
      );
      expect(results).toHaveLength(2);
      turns.push({ role: 'user', content: results });
    }
    expect(turns.at(-1)!.content).toMatchObject([{ type: 'text', text: 'Sun and rain.' }]);
    expectResultsShown(spoken);
  });

  test('streams input_json_delta and thinking, and assembles the message', async () => {
    const { url } = await serve([`<think>\nhm</think>${ANSWERS[0]!}`], { template: THINKING_TEMPLATE });
    const stream = connect(url).messages.stream({
      model: 'm',
      max_tokens: 2000,
      messages,
      tools,
      thinking: { type: 'enabled', budget_tokens: 1024 },
    });
    const pieces: string[] = [];
    let thought = '';
    stream.on('inputJson', (piece) => pieces.push(piece)).on('thinking', (piece) => (thought += piece));
    const { content, stop_reason: reason } = await stream.finalMessage();
    expect(content.map(({ type }) => type)).toEqual(['thinking', 'text', 'tool_use', 'tool_use']);
    expect(content[2]).toMatchObject({ input: { city: 'Rome' } });
    expect(pieces.join('')).toBe('{"city": "Rome"}{"city": "Oslo"}');
    expect(pieces.length).toBeGreaterThan(10);
    expect([thought, reason]).toEqual(['hm', 'tool_use']);
  });
});

describe('ai with @ai-sdk/openai-compatible', () => {
  const connect = (url: string) =>
    createOpenAICompatible({ name: 'ruvllm', baseURL: `${url}/v1`, includeUsage: true }).chatModel('m');
  const tools = {
    weather: tool({
      description: 'Of a city',
      inputSchema: jsonSchema<{ city: string }>(parameters),
      execute: async ({ city }) => weatherOf(city),
    }),
  };
  const stopWhen = stepCountIs(5);

  test('generateText runs several steps', async () => {
    const { url, spoken } = await serve();
    const result = await generateText({ model: connect(url), prompt: question, tools, stopWhen });
    expect(result.text).toBe('Sun and rain.');
    expect(result.steps).toHaveLength(2);
    expect(result.steps[0]!.toolCalls.map(({ input }) => input)).toEqual([{ city: 'Rome' }, { city: 'Oslo' }]);
    expectResultsShown(spoken);
  });

  test('streamText runs several steps with reasoning', async () => {
    const { url, spoken } = await serve([`<think>\nhm</think>${ANSWERS[0]!}`, ANSWERS[1]!], {
      template: THINKING_TEMPLATE,
    });
    const result = streamText({ model: connect(url), prompt: question, tools, stopWhen });
    const kinds = new Set<string>();
    for await (const part of result.fullStream) kinds.add(part.type);
    expect([...kinds]).toEqual(expect.arrayContaining(['reasoning-delta', 'tool-input-delta', 'tool-result']));
    expect(await result.text).toBe('Sun and rain.');
    expect((await result.steps)[0]!.reasoningText).toBe('hm');
    expectResultsShown(spoken);
  });
});

describe('@langchain/openai', () => {
  const connect = (url: string) =>
    new ChatOpenAI({
      model: 'm',
      apiKey: 'none',
      maxRetries: 0,
      configuration: { baseURL: `${url}/v1` },
    }).bindTools([openaiTool]);

  test('bindTools: calls and results', async () => {
    const { url, spoken } = await serve();
    const model = connect(url);
    const first = await model.invoke(question);
    expect(first.tool_calls).toMatchObject([{ args: { city: 'Rome' } }, { args: { city: 'Oslo' } }]);
    const results = first.tool_calls!.map(
      ({ id, args }) => new ToolMessage({ tool_call_id: id!, content: weatherOf(args['city'] as string) }),
    );
    const second = await model.invoke([new HumanMessage(question), first, ...results]);
    expect(second.text).toBe('Sun and rain.');
    expectResultsShown(spoken);
  });

  test('streams tool_call_chunks', async () => {
    const { url } = await serve();
    let whole: AIMessageChunk | null = null;
    let numChunks = 0;
    for await (const chunk of await connect(url).stream(question)) {
      numChunks += chunk.tool_call_chunks?.length ?? 0;
      whole = whole === null ? chunk : whole.concat(chunk);
    }
    expect(numChunks).toBeGreaterThan(10);
    expect(whole!.tool_calls).toMatchObject([{ args: { city: 'Rome' } }, { args: { city: 'Oslo' } }]);
  });
});
