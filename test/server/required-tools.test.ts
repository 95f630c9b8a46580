// The built server makes a small random model call tools: the grammar enforces it.
import Anthropic from '@anthropic-ai/sdk';
import { Validator } from '@cfworker/json-schema';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';
import { hasOpenapi, violationsOf } from '../support/openapi-schemas.ts';

let server: DistServer;
let client: OpenAI;
beforeAll(async () => {
  if (!isServerBuilt) return;
  server = await startDistServer({ contextLength: 2048 });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
});
afterAll(() => server?.[Symbol.asyncDispose]());

const parameters = {
  type: 'object' as const,
  properties: { unit: { enum: ['C', 'F'] }, days: { type: 'integer', minimum: 1, maximum: 9 } },
  required: ['unit', 'days'],
  additionalProperties: false,
};
const validator = new Validator(parameters as ConstructorParameters<typeof Validator>[0], '2020-12');
const expectArguments = (text: string): void => expect(validator.validate(JSON.parse(text)).valid).toBe(true);
const tools = ['weather', 'tides'].map((name) => ({ type: 'function' as const, function: { name, parameters } }));
const messages = [{ role: 'user' as const, content: 'hi' }];
const ask = { model: 'random', messages, tools, max_tokens: 120 };
const NAMED = { type: 'function' as const, function: { name: 'tides' } };

describe.skipIf(!isServerBuilt)('a required tool call', () => {
  test.each(['required' as const, NAMED])('openai, %j: plain, several and streamed', async (choice) => {
    for (const seed of [1, 2, 3]) {
      const answer = await client.chat.completions.create({ ...ask, tool_choice: choice, seed, n: 2 });
      if (hasOpenapi) expect(violationsOf('CreateChatCompletionResponse', answer)).toEqual([]);
      for (const { message, finish_reason: reason } of answer.choices) {
        expect(message.content).toBeNull();
        expect(['tool_calls', 'length']).toContain(reason);
        expect(message.tool_calls!.length).toBeGreaterThan(0);
        for (const call of message.tool_calls!) {
          if (call.type !== 'function') throw new Error(call.type);
          expectArguments(call.function.arguments);
          expect(choice === 'required' ? ['weather', 'tides'] : ['tides']).toContain(call.function.name);
        }
      }
      const calls: { name: string; arguments: string }[] = [];
      for await (const { choices } of await client.chat.completions.create({
        ...ask,
        tool_choice: choice,
        seed,
        stream: true,
      })) {
        for (const { index, function: piece } of choices[0]!.delta.tool_calls ?? []) {
          calls[index] ??= { name: piece!.name!, arguments: '' };
          calls[index]!.arguments += piece!.arguments!;
        }
      }
      expect(calls).toEqual(
        answer.choices[0]!.message.tool_calls!.map((call) => (call.type === 'function' ? call.function : null)),
      );
    }
  });

  test('makes one call if only one is allowed', async () => {
    const answer = await client.chat.completions.create({
      ...ask,
      tool_choice: 'required',
      parallel_tool_calls: false,
    });
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'tool_calls' });
    expect(answer.choices[0]!.message.tool_calls).toHaveLength(1);
  });

  test('responses', async () => {
    const flat = tools.map(({ function: one }) => ({ type: 'function' as const, strict: true, ...one }));
    const answer = await client.responses.create({
      model: 'random',
      input: 'hi',
      tools: flat,
      tool_choice: { type: 'function', name: 'weather' },
      max_output_tokens: 120,
    });
    if (hasOpenapi) expect(violationsOf('Response', answer)).toEqual([]);
    expect(answer.output).toHaveLength(1);
    const [call] = answer.output;
    if (call?.type !== 'function_call') throw new Error(call?.type);
    expect(call.name).toBe('weather');
    expectArguments(call.arguments);
  });

  test('messages', async () => {
    const anthropic = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
    const message = await anthropic.messages
      .stream({
        model: 'random',
        max_tokens: 120,
        messages,
        tools: tools.map(({ function: { name } }) => ({ name, input_schema: parameters })),
        tool_choice: { type: 'tool', name: 'tides' },
      })
      .finalMessage();
    expect(message.content).toHaveLength(1);
    const [block] = message.content;
    if (block?.type !== 'tool_use') throw new Error(block?.type);
    expect(block.name).toBe('tides');
    expectArguments(JSON.stringify(block.input));
  });

  test('an unenforceable schema is a 400 with the keyword; without strict it is not enforced', async () => {
    const hard = { type: 'object', properties: { a: { type: 'string', pattern: '(?=a)b' } } };
    const one = (strict: boolean) => [{ type: 'function' as const, function: { name: 'f', parameters: hard, strict } }];
    const create = (more: object) =>
      client.chat.completions.create({ model: 'random', messages, max_tokens: 20, ...more });
    const refused = { status: 400, code: 'unsupported', message: expect.stringContaining('pattern') as string };
    await expect(create({ tools: one(false), tool_choice: 'required' })).rejects.toMatchObject(refused);
    await expect(create({ tools: one(true) })).rejects.toMatchObject(refused);
    expect((await create({ tools: one(false) })).choices).toHaveLength(1);
  });

  test('answers with a schema beside optional tools', async () => {
    const schema = {
      type: 'object',
      properties: { ok: { type: 'boolean' } },
      required: ['ok'],
      additionalProperties: false,
    };
    const { choices } = await client.chat.completions.create({
      ...ask,
      n: 4,
      seed: 1,
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema, strict: true } },
    });
    for (const { message } of choices) {
      if (message.tool_calls === undefined) expect(Object.keys(JSON.parse(message.content!) as object)).toEqual(['ok']);
      else
        for (const call of message.tool_calls) if (call.type === 'function') expectArguments(call.function.arguments);
    }
  });
});
