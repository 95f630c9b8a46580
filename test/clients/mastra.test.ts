// Mastra, with `url` as its address.
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { ANSWER, CALL, CALL_AND_RESULT, PLACE, QUESTION, serve, weatherOf } from '../support/client-server.ts';

const weather = createTool({
  id: 'weather',
  description: 'Of a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async (input) => weatherOf((input as { context: { city: string } }).context.city),
});

async function connect(answers: readonly string[], { name = 'm', hasTool = false } = {}) {
  const { baseURL, requests } = await serve(answers);
  const agent = new Agent({
    name: 'guide',
    instructions: 'Be kind.',
    model: { id: `ruvllm/${name}`, url: baseURL, apiKey: 'none' },
    tools: hasTool ? { weather } : {},
    maxRetries: 0,
  });
  return { agent, requests };
}

test('generate', async () => {
  const { agent, requests } = await connect([ANSWER]);
  expect((await agent.generate(QUESTION)).text).toBe(ANSWER);
  expect(requests[0]!.prompt).toContain('Be kind.');
});

test('stream', async () => {
  const { agent } = await connect([ANSWER]);
  let text = '';
  for await (const piece of (await agent.stream(QUESTION)).textStream) text += piece;
  expect(text).toBe(ANSWER);
});

test('a tool, and the turn after it', async () => {
  const { agent, requests } = await connect([CALL, ANSWER], { hasTool: true });
  expect((await agent.generate(QUESTION)).text).toBe(ANSWER);
  expect(requests[1]!.prompt).toMatch(CALL_AND_RESULT);
});

test('structured output', async () => {
  const { agent } = await connect([PLACE]);
  const schema = z.object({ city: z.string(), isCapital: z.boolean() });
  const { object } = await agent.generate(QUESTION, { structuredOutput: { schema } });
  expect(object).toEqual({ city: 'Rome', isCapital: true });
});

test('errors', async () => {
  const { agent } = await connect([], { name: 'none' });
  await expect(agent.generate(QUESTION)).rejects.toThrow('does not exist here');
});
