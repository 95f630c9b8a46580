// OpenAI's Agents SDK over both of its APIs.
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ANSWER, CALL, CALL_AND_RESULT, PLACE, QUESTION, serve, weatherOf } from '../support/client-server.ts';

setTracingDisabled(true);
const weather = tool({
  name: 'weather',
  description: 'Of a city',
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => weatherOf(city),
});

describe.each([
  ['chat completions', OpenAIChatCompletionsModel],
  ['responses', OpenAIResponsesModel],
] as const)('%s', (_name, Model) => {
  async function connect(answers: readonly string[], name = 'm') {
    const { baseURL, requests } = await serve(answers);
    const client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
    return { model: new Model(client as never, name), requests };
  }

  test('an answer, and a second turn with its history', async () => {
    const { model, requests } = await connect([ANSWER, 'You asked about Rome.']);
    const agent = new Agent({ name: 'guide', instructions: 'Be kind.', model });
    const first = await run(agent, QUESTION);
    expect(first.finalOutput).toBe(ANSWER);
    const second = await run(agent, [...first.history, { role: 'user', content: 'What did I ask?' }]);
    expect(second.finalOutput).toBe('You asked about Rome.');
    expect(requests[1]!.prompt).toContain(`assistant\n${ANSWER}<|im_end|>`);
  });

  test('a stream', async () => {
    const { model } = await connect([ANSWER]);
    const result = await run(new Agent({ name: 'guide', model }), QUESTION, { stream: true });
    let text = '';
    for await (const piece of result.toTextStream()) text += piece;
    await result.completed;
    expect(text).toBe(ANSWER);
  });

  test.each([false, true])('a tool and the turn after it, streamed: %s', async (stream) => {
    const { model, requests } = await connect([CALL, ANSWER]);
    const agent = new Agent({ name: 'guide', model, tools: [weather] });
    const result = stream ? await run(agent, QUESTION, { stream: true }) : await run(agent, QUESTION);
    if ('completed' in result) await result.completed;
    expect(result.finalOutput).toBe(ANSWER);
    expect(requests[1]!.prompt).toMatch(CALL_AND_RESULT);
  });

  test('structured output', async () => {
    const { model, requests } = await connect([PLACE]);
    const outputType = z.object({ city: z.string(), isCapital: z.boolean() });
    const result = await run(new Agent({ name: 'guide', model, outputType }), QUESTION);
    expect(result.finalOutput).toEqual({ city: 'Rome', isCapital: true });
    expect(requests[0]!.grammar).toMatchObject({ type: 'json_schema' });
  });

  test('an error', async () => {
    const { model } = await connect([], 'none');
    await expect(run(new Agent({ name: 'guide', model }), QUESTION)).rejects.toMatchObject({ status: 404 });
  });
});
