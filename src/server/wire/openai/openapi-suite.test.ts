// Every kind of response against OpenAI's OpenAPI document.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Schema, Validator } from '@cfworker/json-schema';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createTestServer, entryOf } from '../../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../../test/support/toy-runtime.ts';

const path = fileURLToPath(new URL('../../../../../shared/suites/openai/openapi.yaml', import.meta.url));
const hasSuite = existsSync(path);
if (!hasSuite) console.log(`OpenAI's description skipped: ${path} does not exist`);

type Schemas = Record<string, Schema>;
const schemas = hasSuite
  ? (parse(readFileSync(path, 'utf8')) as { components: { schemas: Schemas } }).components.schemas
  : {};

/** The schema and its references, because the whole document has thousands of schemas. */
function closure(name: string): Schemas {
  const found: Schemas = {};
  const wanted = [name];
  for (let next = wanted.pop(); next !== undefined; next = wanted.pop()) {
    if (found[next] !== undefined) continue;
    found[next] = withNull(schemas[next]) as Schema;
    for (const [, other] of JSON.stringify(schemas[next]).matchAll(/#\/components\/schemas\/([\w.-]+)/g))
      wanted.push(other!);
  }
  return found;
}

/** The document has version 3.1 but contains `nullable`, which that version does not support. */
function withNull(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withNull);
  const { nullable, ...rest } = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withNull(one)]));
  return nullable === true ? { anyOf: [rest, { type: 'null' }] } : rest;
}

const validators = new Map<string, Validator>();
function expectValid(name: string, value: unknown): void {
  let validator = validators.get(name);
  if (validator === undefined) {
    const schema = { $ref: `#/components/schemas/${name}`, components: { schemas: closure(name) } } as Schema;
    validator = new Validator(schema, '2020-12', false);
    validators.set(name, validator);
  }
  const { valid, errors } = validator.validate(value);
  const reasons = errors.map(({ instanceLocation, error }) => `${instanceLocation} ${error}`).slice(-5);
  expect({ valid, reasons }, name).toEqual({ valid: true, reasons: valid ? reasons : [] });
}

async function setUp() {
  const { model } = await createToyRuntime();
  const { fetch } = createTestServer([entryOf('toy', async () => model)]);
  return async (url: string, body?: object): Promise<{ status: number; text: string }> => {
    const response = await fetch(
      new Request(`http://localhost${url}`, {
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
        headers: { 'content-type': 'application/json' },
      }),
    );
    return { status: response.status, text: await response.text() };
  };
}

const chunksOf = (text: string): unknown[] =>
  text.split('\n\n').flatMap((event) => (event.startsWith('data: {') ? [JSON.parse(event.slice(6))] : []));

describe.skipIf(!hasSuite)("OpenAI's description", () => {
  const messages = [{ role: 'user', content: 'hi' }];
  const CHATS = [
    {},
    { n: 2, max_tokens: 5 },
    { logprobs: true, top_logprobs: 3, max_tokens: 5 },
    { stop: ['a'], seed: 3 },
  ].map((more) => ({ model: 'toy', messages, ...more }));

  test('the validator rejects an invalid response', () => {
    const head = { id: 'x', created: 1, model: 'm', object: 'chat.completion' };
    expectValid('CreateChatCompletionResponse', { ...head, choices: [] });
    expect(() => expectValid('CreateChatCompletionResponse', head)).toThrow();
    expect(() => expectValid('CreateChatCompletionResponse', { ...head, choices: [{ index: 0 }] })).toThrow();
  });

  test.each(CHATS)('chat %j, plain and streamed', async (body) => {
    const ask = await setUp();
    expectValid('CreateChatCompletionResponse', JSON.parse((await ask('/v1/chat/completions', body)).text));
    for (const more of [{}, { stream_options: { include_usage: true } }]) {
      const chunks = chunksOf((await ask('/v1/chat/completions', { ...body, stream: true, ...more })).text);
      expect(chunks.length).toBeGreaterThan(2);
      for (const chunk of chunks) expectValid('CreateChatCompletionStreamResponse', chunk);
    }
  });

  test.each([
    { prompt: 'a' },
    { prompt: ['a', 'b'], n: 2, echo: true },
    { prompt: [4, 5], logprobs: 2, max_tokens: 5 },
  ])('completion %j, plain and streamed', async (more) => {
    const ask = await setUp();
    const body = { model: 'toy', ...more };
    expectValid('CreateCompletionResponse', JSON.parse((await ask('/v1/completions', body)).text));
    for (const chunk of chunksOf((await ask('/v1/completions', { ...body, stream: true })).text)) {
      // The document requires a finish reason in every chunk, but only the last one has it.
      const choices = (chunk as { choices: { finish_reason: string | null }[] }).choices;
      for (const choice of choices) choice.finish_reason ??= 'stop';
      expectValid('CreateCompletionResponse', chunk);
    }
  });

  test('models and errors', async () => {
    const ask = await setUp();
    expectValid('ListModelsResponse', JSON.parse((await ask('/v1/models')).text));
    expectValid('Model', JSON.parse((await ask('/v1/models/toy')).text));
    for (const [url, body] of [
      ['/v1/models/nope'],
      ['/nope'],
      ['/v1/chat/completions', {}],
      ['/v1/chat/completions', { ...CHATS[0], tools: [{ type: 'function', function: { name: 'a b' } }] }],
      ['/v1/embeddings', {}],
    ] as const) {
      const { status, text } = await ask(url, body);
      expect(status).toBeGreaterThanOrEqual(400);
      expectValid('ErrorResponse', JSON.parse(text));
    }
  });
});
